"""Every benchmark has a section with its command; test_snippets checks that commands exist."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.commands import options_of, program

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "benchmarks").glob("*.md"))
FENCES = re.compile(r"```console\n(.*?)```", flags=re.DOTALL)
SPANS = re.compile(r"(?<!`)`([^`]+)`(?!`)")
PLOTS = re.compile(r"!\[[^]]+\]\(\.\./plots/([a-z0-9_]+\.png)\)")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text below it."""

    page: str
    heading: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: {self.heading}"

    @property
    def commands(self) -> list[str]:
        """The commands in the fences, the heading and the text of the section."""
        fenced = "".join(FENCES.findall(self.text)).replace("\\\n", " ")
        lines = [line[2:] for line in fenced.splitlines() if line.startswith("$ casewright ")]
        prose = " ".join(FENCES.sub("", self.heading + "\n" + self.text).split())
        return [*lines, *(span for span in SPANS.findall(prose) if span.startswith("casewright "))]


def _sections() -> Iterator[Section]:
    for page in PAGES:
        parts = re.split(r"(?m)^#{1,3} (.+)\n", page.read_text(encoding="utf-8"))
        for heading, text in zip(parts[1::2], parts[2::2], strict=True):
            yield Section(page.name, heading, text)


SECTIONS = list(_sections())


STALE = runpy.run_path(str(DOCS / "_site" / "stale.py"))


def _benches() -> set[str]:
    return set(program().commands["bench"].commands)


def test_option_named_without_a_command_belongs_to_a_command_of_the_page() -> None:
    for page in PAGES:
        sections = [section for section in SECTIONS if section.page == page.name]
        options = {o for s in sections for line in s.commands for o in options_of(line.split()[1:])}
        for section in sections:
            prose = FENCES.sub("", section.text)
            spans = [span for span in SPANS.findall(prose) if span.startswith("--")]
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(spans)):
                assert option in options, f"{section}: {option}"


def test_every_bench_command_has_exactly_one_section() -> None:
    headings = re.compile(r"(?m)^## `casewright bench ([a-z0-9-]+)`$")
    names = [name for page in PAGES for name in headings.findall(page.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(_benches())


def test_every_table_is_in_a_section_that_names_its_command() -> None:
    sections = [s for s in SECTIONS if re.search(r"(?m)^\|(?:\s*-+\s*\|)+$", s.text)]
    assert len(sections) > 20
    for section in sections:
        assert section.commands, section


def test_index_links_every_bench_command_to_its_section() -> None:
    index = (DOCS / "benchmarks" / "index.md").read_text(encoding="utf-8")
    row = re.compile(r"\| `casewright bench ([a-z0-9-]+)` \|.*\(([a-z0-9-]+\.md)#([a-z0-9-]+)\)")
    rows = row.findall(index)
    assert sorted(name for name, _, _ in rows) == sorted(_benches())
    for name, page, anchor in rows:
        assert anchor == f"casewright-bench-{name}"
        text = (DOCS / "benchmarks" / page).read_text(encoding="utf-8")
        assert f"## `casewright bench {name}`\n" in text


def test_every_plot_is_shown_once_beside_the_command_that_draws_it() -> None:
    plots = [(name, section) for section in SECTIONS for name in PLOTS.findall(section.text)]
    assert sorted(name for name, _ in plots) == sorted(
        path.name for path in (DOCS / "plots").glob("*.png")
    )
    for name, section in plots:
        assert any(f"--plot {name}" in command for command in section.commands), section


def test_stale_script_finds_changes_of_measured_code_since_the_commit_of_a_table(
    tmp_path: Path,
) -> None:
    assert set(STALE["CODE_BY_COMMAND"]) == _benches()
    roots = {path for paths in STALE["CODE_BY_COMMAND"].values() for path in paths.split()}
    assert all((DOCS.parent / path).exists() for path in roots)

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    for name in ("graph", "stores"):
        (tmp_path / name).write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short", "HEAD")
    page = f"## `casewright bench executor`\n\nPrinted by `{commit}+`, a row was printed by\n"
    page += f"commit `{'b' * 7}`.\n## `casewright bench x`\n"
    assert list(STALE["sections"](page)) == [("executor", [commit, "b" * 7]), ("x", [])]
    (tmp_path / "graph").write_text("two")
    assert "1 file changed" in STALE["changed_since"](tmp_path, commit, ["graph"])
    assert STALE["changed_since"](tmp_path, commit, ["stores"]) == ""
