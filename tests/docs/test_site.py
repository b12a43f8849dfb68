"""Tests of the documentation's site: complete, without warnings and without other hosts."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import ROOT

DOCS = ROOT / "docs"
CHECK = DOCS / "_site" / "check.py"
needs_mkdocs = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings", "linkcheck")),
    reason="the extra docs is not installed",
)


def _recipe() -> list[str]:
    """Return the commands of ``make docs``."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"(?m)^docs:.*\n((?:\t.*\n)+)", makefile)
    return [line.strip() for line in recipe.splitlines()]


def _run(command: str, site: Path) -> subprocess.CompletedProcess[str]:
    words = [str(site) if word == "site" else word for word in shlex.split(command)]
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_0-9]+=", word))
    words = [sys.executable if word.endswith("/python") else word for word in words]
    return subprocess.run(
        words[len(variables) :],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )


@needs_mkdocs
def test_site_is_built_without_a_warning_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    build, check = _recipe()
    built = _run(build, tmp_path / "site")
    output = built.stdout + built.stderr
    assert built.returncode == 0, output
    assert [line for line in output.splitlines() if not line.startswith("INFO ")] == []
    checked = _run(check, tmp_path / "site")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "every link and anchor leads somewhere" in checked.stdout
    _check_exported_names(tmp_path / "site")


def _check_exported_names(site: Path) -> None:
    from importlib import import_module

    for room in ("stores", "tools", "planner", "graph", "domains"):
        page = (site / "reference" / f"{room}.html").read_text(encoding="utf-8")
        exported = import_module(f"casewright.{room}").__all__
        assert exported
        # The anchor of a name may contain its module.
        anchors = set(re.findall(rf'id="casewright\.{room}\.(?:\w+\.)*(\w+)"', page))
        assert sorted(set(exported) - anchors) == []
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert 'id="casewright-finetune-reader"' in commands
    assert "--no-grammar" in commands
    settings = (site / "reference" / "settings.html").read_text(encoding="utf-8")
    assert "CASEWRIGHT_SHUTDOWN_SECONDS" in settings


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="b.html">', "no such file"),
        ('<a href="a.html#nothing">', "no such anchor"),
        ('<a href="../../a.html">', "no such file"),
        ('<script src="https://example.org/a.js"></script>', "fetches"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "fetches"),
        ('<img src="a.png" srcset="https://example.org/a.png 2x">', "fetches"),
        ("<style>p {background: url(https://example.org/a.png)}</style>", "fetches"),
        ('<script>import("https://example.org/a.mjs")</script>', "fetches"),
        ('<pre class="mermaid">a</pre>', "fetches"),
    ],
)
def test_site_check_reports_broken_links_and_external_resources(
    page: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    checked = _run(f"bin/python {CHECK} site", tmp_path)
    assert checked.returncode == 1
    assert fault in checked.stderr


def test_site_check_accepts_external_links_and_existing_anchors(
    tmp_path: Path,
) -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("site_check", CHECK)
    assert spec is not None
    assert spec.loader is not None
    check: Any = module_from_spec(spec)
    sys.modules[spec.name] = check
    try:
        spec.loader.exec_module(check)
        text = '<a href="https://example.org/">x</a><a href="#b" id="b">y</a><p id="c">'
        (tmp_path / "index.html").write_text(text + '<a href="index.html#c">', encoding="utf-8")
        assert list(check.faults(tmp_path)) == []
    finally:
        del sys.modules[spec.name]


def test_every_page_is_in_the_navigation() -> None:
    linked = set(re.findall(r"[\w/-]+\.(?:md|ipynb)\b", (ROOT / "mkdocs.yml").read_text("utf-8")))
    files = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    pages = {file.relative_to(DOCS).as_posix() for file in files if "_site" not in file.parts}
    # The index of the decision notes links every note.
    index = (DOCS / "decisions/index.md").read_text("utf-8")
    notes = {page for page in pages - linked if f"({page.removeprefix('decisions/')})" in index}
    assert pages == linked | notes


def test_every_plot_is_shown_in_a_section_that_names_its_command() -> None:
    sections = [
        section
        for page in DOCS.rglob("*.md")
        for section in re.split(r"(?m)^(?=#{1,3} )", page.read_text(encoding="utf-8"))
    ]
    plots = sorted((DOCS / "plots").iterdir())
    assert plots
    for plot in plots:
        hits = [text for text in sections if re.search(rf"!\[[^]]*\]\([^)]*{plot.name}\)", text)]
        assert hits, f"{plot.name} is on no page"
        assert all("casewright " in text for text in hits), f"{plot.name}: no command beside it"
