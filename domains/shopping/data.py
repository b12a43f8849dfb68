"""The shop's data, as it ships with the package: written by hand, but for ids and dates."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from casewright.domains.shopping.ids_and_dates import complete

NAMES = ("products", "reviews", "help", "orders", "customers", "queries")


def data_file(name: str) -> Traversable:
    """Return the JSON Lines file of this name."""
    return files("casewright.domains.shopping") / "data" / f"{name}.jsonl"


@cache
def written(name: str) -> list[dict[str, Any]]:
    """Read what is written in a file."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Return a file's records, complete with ids and dates."""
    # Queries have ids of their own: people name them.
    return (
        written(name) if name in ("queries", "frozen", "conversations") else complete(name, written)
    )
