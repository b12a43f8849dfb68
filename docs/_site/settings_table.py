"""Fills in the table of settings, from the class that reads them."""

from __future__ import annotations

import json
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

MARK = "<!-- settings -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the table where the mark is."""
    return markdown.replace(MARK, settings_table()) if MARK in markdown else markdown


def settings_table() -> str:
    """Return every setting as a row: its key, what can be given, its default, its variable."""
    from casewright.serve.settings.settings import PREFIX, Settings

    # What it means stands second: a narrow screen shows the first two columns.
    rows = ["| key in the file | what can be given | default | variable |", "|---|---|---|---|"]
    # Made without the environment and without a file: what a class says, not what this machine has.
    for name, field in Settings.model_fields.items():
        about = (field.description or "").replace("|", "\\|")
        default = _told(field.default)
        rows.append(f"| `{name}` | {about} | {default} | `{PREFIX}{name.upper()}` |")
    return "\n".join(rows)


def _told(value: Any) -> str:
    if value is None or value == ():
        return "–"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`"
