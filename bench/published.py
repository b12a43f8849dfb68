"""The figures that papers printed, which benches show beside their own."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published(paper: str) -> dict[str, Any]:
    """Return the tables of a paper, by the paper's name in ``published.toml``."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[paper])
