"""README is short, and its links and commands exist; test_snippets runs its code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: The limit of lines; longer texts belong on the pages of docs.
LINES = 220


def test_readme_shows_commands_for_own_tools_and_documents() -> None:
    for text in ('title="plant.py"', "$ casewright ask --domain plant.py:", "$ casewright ingest"):
        assert text in README


def test_readme_is_not_longer_than_its_limit() -> None:
    assert len(README.splitlines()) <= LINES


def test_every_relative_link_of_readme_and_docs_leads_to_a_file() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_picture_of_readme_exists() -> None:
    pictures = re.findall(r"""(?:src|srcset)="(?!http)([^"]+)\"""", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).is_file(), picture


def test_readme_links_every_page_of_docs() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)", README))
    guides = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert guides - linked <= {"docs/index.md"}


def test_every_make_target_that_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"[`$] ?make ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
