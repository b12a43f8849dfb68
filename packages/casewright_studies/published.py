"""The tables that papers published."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published_tables(paper: str) -> dict[str, Any]:
    """Return a paper's tables by the paper's name in ``published.toml``."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[paper])
