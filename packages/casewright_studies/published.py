"""The tables that papers published."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published_tables(paper: str) -> dict[str, Any]:
    """Return the tables of ``published.toml`` under a paper's key."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[paper])
