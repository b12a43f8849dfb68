"""MkDocs hook: fills in the table of settings, from the class ``Settings``."""

from __future__ import annotations

import json
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

MARK = "<!-- settings -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the mark in a page by the table."""
    return markdown.replace(MARK, settings_table()) if MARK in markdown else markdown


def settings_table() -> str:
    """Return a table with the key, value, default and environment variable of each setting."""
    from casewright.serve.settings.settings import PREFIX, Settings

    # The description is second, because a narrow screen shows only the first two columns.
    rows = ["| key in the file | value | default | variable |", "|---|---|---|---|"]
    # The defaults are those of the class, without this machine's environment and settings file.
    for name, field in Settings.model_fields.items():
        description = (field.description or "").replace("|", "\\|")
        default = _code(field.default)
        rows.append(f"| `{name}` | {description} | {default} | `{PREFIX}{name.upper()}` |")
    return "\n".join(rows)


def _code(value: Any) -> str:
    """Return a default value as Markdown code, as it is written in the settings file."""
    if value is None or value == ():
        return "–"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`"
