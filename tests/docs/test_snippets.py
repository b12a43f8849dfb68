"""The code of the documentation's pages runs, and prints what the pages show."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.commands import Command, commands_of, mistake
from tests.docs.snippets import ROOT, Fence, difference, fences, missing_line, run_page, typed_lines
from tests.serve.helpers import built_home, copied_home, run

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages whose code other tests run.
TESTED_APART = {"embedding.md", "modality.md", "plan-language.md", "scale.md"}
#: Pages whose commands take minutes to hours.
MEASURED = DOCS / "benchmarks"
ALL_PAGES = [ROOT / "README.md", *PAGES]
RUN_PAGES = [
    page
    for page in ALL_PAGES
    if page.name not in TESTED_APART
    and MEASURED not in page.parents
    and any(fence.not_run is None for fence in fences(page))
]
SHELLS = ("console", "sh", "bash")
_SPAN = re.compile(r"(?<!`)`(casewright [^`]+)`(?!`)")


def _id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUN_PAGES, ids=_id)
def test_code_of_a_page_runs_and_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    homes: list[Path] = []

    def run_command(command: Command, path: Path) -> tuple[int, str]:
        # A page that runs commands gets its own home, which it may change.
        if not homes:
            homes.append(copied_home(built_home(), tmp_path / "home"))
        completed = run(
            homes[0],
            *command.arguments,
            folder=path,
            stdin=command.piped,
            variables=command.variables,
        )
        return completed.returncode, completed.stdout + completed.stderr

    run_page(page, folder, run_command)


def _shell_lines(fence: Fence) -> list[str]:
    if fence.language == "console":
        return [line for line, _ in typed_lines(fence.text)]
    return fence.text.replace("\\\n", " ").splitlines() if fence.language in SHELLS else []


@pytest.mark.parametrize("page", ALL_PAGES, ids=_id)
def test_every_command_that_a_page_names_exists_with_its_options(page: Path) -> None:
    for fence in fences(page):
        for line in _shell_lines(fence):
            for command in commands_of(line):
                assert not mistake(list(command.arguments)), f"{fence}: {line}"
    prose = re.sub(r"(?ms)^ *(```+).*?^ *\1 *$", "", page.read_text(encoding="utf-8"))
    for span in _SPAN.findall(prose):
        assert not mistake(span.split()[1:]), f"{_id(page)}: {span}"


def test_every_extra_and_every_make_target_that_a_page_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    extras, named_targets = set(), set()
    for page in ALL_PAGES:
        for fence in fences(page):
            for line in _shell_lines(fence):
                for listed in re.findall(r"(?:\.|casewright)\[([a-z,]+)\]", line):
                    extras.update(listed.split(","))
                named_targets.update(re.findall(r"(?:^|&& )make ([a-z-]+)", line))
    assert extras
    assert named_targets
    assert extras <= set(project["optional-dependencies"])
    assert named_targets <= targets


def test_every_block_that_is_not_run_states_a_reason() -> None:
    skipped = [fence for page in ALL_PAGES for fence in fences(page) if fence.not_run is not None]
    assert skipped
    assert [str(fence) for fence in skipped if len(fence.not_run or "") < 5] == []


def test_output_comparison_ignores_only_digits_white_space_and_ellipses() -> None:
    assert not difference("a 12  ms\n…\nlast", "a 7 ms\n\nmore\nand more\nlast\n")
    assert difference("a 12 ms", "a 12 ms\nmore\n")
    assert difference("a 12 ms", "a 12 s\n")
    assert not difference("planner …  case", "planner   case\n")
    assert not missing_line("b\nd 1", "a\nb\nc\nd 22\n")
    assert missing_line("d\nb", "a\nb\nc\nd\n")
    assert not missing_line("a line that\ngoes on", "a line\nthat goes on\n")
    assert missing_line("b", "ab\n")


def test_unknown_commands_and_options_are_reported() -> None:
    assert mistake(["aks", "…"])
    assert mistake(["bench", "nothing"])
    assert mistake(["ask", "--nothing", "x"])
    assert not mistake(["ask", "a question", "--json"])
    assert not mistake(["bench", "NAME"])


def test_page_with_failing_code_or_other_output_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "a.md"

    def text(*parts: str) -> str:
        return "\n".join(parts) + "\n"

    for block, message in (
        (text("```python", "print(1 / 0)", "```"), "ZeroDivisionError"),
        (text("```python", "print('a')", "```", "", "```text", "b", "```"), "printed"),
        (text("```console", "$ casewright ask x", "b", "```"), "not printed"),
        (text("```toml", "a = = 1", "```"), "Invalid"),
    ):
        page.write_text(block, encoding="utf-8")
        with pytest.raises((AssertionError, ValueError), match=message):
            run_page(page, tmp_path, lambda command, folder: (0, "a\n"))


def test_shell_lines_are_parsed_into_variables_piped_text_and_arguments() -> None:
    (command,) = commands_of("""A=b casewright ask "x | y" --json  # says more""")
    assert (command.variables, command.arguments) == ({"A": "b"}, ("ask", "x | y", "--json"))
    (piped,) = commands_of(r"printf 'a\nb\n' | casewright chat")
    assert (piped.piped, piped.arguments) == ("a\nb\n", ("chat",))
    assert list(commands_of("curl localhost | grep casewright")) == []
