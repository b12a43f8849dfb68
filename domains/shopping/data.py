"""The shop's shipped data, which are written by hand except for ids and dates."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from casewright.domains.shopping.ids_and_dates import complete

#: Names of the data files, except those of test questions.
FILE_NAMES = ("products", "reviews", "help", "orders", "customers", "queries")


def data_file(name: str) -> Traversable:
    """Return the path of a data file, in the format JSON Lines."""
    return files("casewright.domains.shopping") / "data" / f"{name}.jsonl"


@cache
def source_records(name: str) -> list[dict[str, Any]]:
    """Return the records of a file, without ids and dates."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Return the records of a file, with ids and dates."""
    # Files of queries already have ids, and no dates.
    has_ids = name in ("queries", "frozen", "conversations")
    return source_records(name) if has_ids else complete(name, source_records)
