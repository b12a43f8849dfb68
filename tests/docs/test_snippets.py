"""The code of the documentation's pages runs, and prints what the pages show."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.commands import Command, commands_of, mistakes
from tests.docs.snippets import ROOT, Fence, differs, fences, lacks, run_page, typed
from tests.serve.helpers import built_home, copied_home, run

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Their code is run by tests of their own.
TESTED_APART = {"embedding.md", "modality.md", "plan-language.md", "scale.md"}
#: The commands of these take minutes to hours; what they print is told with its machine.
MEASURED = DOCS / "benchmarks"
TOLD = [ROOT / "README.md", *PAGES]
RUN = [
    page
    for page in TOLD
    if page.name not in TESTED_APART
    and MEASURED not in page.parents
    and any(fence.not_run is None for fence in fences(page))
]
SHELLS = ("console", "sh", "bash")
_SPAN = re.compile(r"(?<!`)`(casewright [^`]+)`(?!`)")


def _id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUN, ids=_id)
def test_code_of_a_page_runs_and_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    homes: list[Path] = []

    def in_the_page_s_home(command: Command, place: Path) -> tuple[int, str]:
        # Only for pages that run commands; each may change what is stored there.
        if not homes:
            homes.append(copied_home(built_home(), tmp_path / "home"))
        done = run(
            homes[0],
            *command.arguments,
            folder=place,
            typed=command.piped,
            variables=command.variables,
        )
        return done.returncode, done.stdout + done.stderr

    run_page(page, folder, in_the_page_s_home)


def _shell_lines(fence: Fence) -> list[str]:
    if fence.language == "console":
        return [line for line, _ in typed(fence.text)]
    return fence.text.replace("\\\n", " ").splitlines() if fence.language in SHELLS else []


@pytest.mark.parametrize("page", TOLD, ids=_id)
def test_every_command_that_a_page_names_exists_with_its_options(page: Path) -> None:
    for fence in fences(page):
        for line in _shell_lines(fence):
            for command in commands_of(line):
                assert not mistakes(list(command.arguments)), f"{fence}: {line}"
    prose = re.sub(r"(?ms)^ *(```+).*?^ *\1 *$", "", page.read_text(encoding="utf-8"))
    for span in _SPAN.findall(prose):
        assert not mistakes(span.split()[1:]), f"{_id(page)}: {span}"


def test_every_extra_and_every_make_target_that_a_page_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    extras, made = set(), set()
    for page in TOLD:
        for fence in fences(page):
            for line in _shell_lines(fence):
                for listed in re.findall(r"(?:\.|casewright)\[([a-z,]+)\]", line):
                    extras.update(listed.split(","))
                made.update(re.findall(r"(?:^|&& )make ([a-z-]+)", line))
    assert extras
    assert made
    assert extras <= set(project["optional-dependencies"])
    assert made <= targets


def test_every_block_that_is_not_run_states_a_reason() -> None:
    marked = [fence for page in TOLD for fence in fences(page) if fence.not_run is not None]
    assert marked
    assert [str(fence) for fence in marked if len(fence.not_run or "") < 5] == []


def test_output_comparison_ignores_only_digits_white_space_and_ellipses() -> None:
    assert not differs("a 12  ms\n…\nlast", "a 7 ms\n\nmore\nand more\nlast\n")
    assert differs("a 12 ms", "a 12 ms\nmore\n")
    assert differs("a 12 ms", "a 12 s\n")
    assert not differs("planner …  case", "planner   case\n")
    assert not lacks("b\nd 1", "a\nb\nc\nd 22\n")
    assert lacks("d\nb", "a\nb\nc\nd\n")
    assert not lacks("a line that\ngoes on", "a line\nthat goes on\n")
    assert lacks("b", "ab\n")


def test_unknown_commands_and_options_are_reported() -> None:
    assert mistakes(["aks", "…"])
    assert mistakes(["bench", "nothing"])
    assert mistakes(["ask", "--nothing", "x"])
    assert not mistakes(["ask", "a question", "--json"])
    assert not mistakes(["bench", "NAME"])


def test_page_with_failing_code_or_other_output_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "a.md"

    def text(*parts: str) -> str:
        return "\n".join(parts) + "\n"

    for shown, said in (
        (text("```python", "print(1 / 0)", "```"), "ZeroDivisionError"),
        (text("```python", "print('a')", "```", "", "```text", "b", "```"), "printed"),
        (text("```console", "$ casewright ask x", "b", "```"), "not printed"),
        (text("```toml", "a = = 1", "```"), "Invalid"),
    ):
        page.write_text(shown, encoding="utf-8")
        with pytest.raises((AssertionError, ValueError), match=said):
            run_page(page, tmp_path, lambda command, folder: (0, "a\n"))


def test_shell_lines_are_parsed_into_variables_piped_text_and_arguments() -> None:
    (one,) = commands_of("""A=b casewright ask "x | y" --json  # says more""")
    assert (one.variables, one.arguments) == ({"A": "b"}, ("ask", "x | y", "--json"))
    (two,) = commands_of(r"printf 'a\nb\n' | casewright chat")
    assert (two.piped, two.arguments) == ("a\nb\n", ("chat",))
    assert list(commands_of("curl localhost | grep casewright")) == []
