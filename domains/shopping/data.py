"""The shop's data, as it ships with the package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

NAMES = ("products", "reviews", "help", "orders", "customers", "queries")


def data_file(name: str) -> Traversable:
    """Return the JSON Lines file of this name."""
    return files("casewright.domains.shopping") / "data" / f"{name}.jsonl"


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Read a file's records."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
