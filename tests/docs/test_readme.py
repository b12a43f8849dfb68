"""README's code runs as it is printed, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_every_snippet_runs_and_prints(snippet: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, timeout=90
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def test_own_tools_snippet_answers_from_the_tool_it_declares(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SNIPPETS[0]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert "61 °C" in run.stdout


def test_every_link_into_the_repository_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_make_target_that_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"[`$] ?make ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
