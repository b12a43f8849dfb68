"""README is short, its code runs as it is printed, and its links and commands lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


#: What the one about tools of one's own answers, from the tool that it declares.
OWN_TOOLS, ANSWER = "def find_machine", "61 °C"
#: The rest is on the pages of docs.
LINES = 170


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_every_snippet_runs_and_prints(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # As a module of its own: classes and annotations are looked up by a module's name.
    made = ModuleType(f"snippet_{number}")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(SNIPPETS[number], made.__name__, "exec"), made.__dict__)
    printed = capsys.readouterr().out
    assert printed.strip()
    assert ANSWER in printed or OWN_TOOLS not in SNIPPETS[number]


def test_own_tools_are_shown_in_a_snippet() -> None:
    assert any(OWN_TOOLS in snippet for snippet in SNIPPETS)


def test_it_stays_short() -> None:
    assert len(README.splitlines()) <= LINES


def test_every_link_into_the_repository_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_picture_that_it_shows_is_there() -> None:
    shown = re.findall(r"""(?:src|srcset)="(?!http)([^"]+)\"""", README)
    assert shown
    for picture in shown:
        assert (ROOT / picture).is_file(), picture


def test_every_page_of_the_guides_is_linked() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)", README))
    guides = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert guides - linked <= {"docs/index.md", "docs/comparison.md"}


def test_every_make_target_that_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"[`$] ?make ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
