"""The tables that the paper CBR-RAG published."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published_table(name: str) -> dict[str, Any]:
    """Return a table of ``published.toml`` by its name."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[name])
