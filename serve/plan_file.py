"""Planning for a whole file of queries: one line in, one line out, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from casewright.errors import InputError
from casewright.planner import Planner, QueryRecord
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox


def plan_file(source: Path, target: IO[str], toolbox: Toolbox, planner: Planner) -> tuple[int, int]:
    """Plan for every record of a JSON Lines file; return the counts of records and of bad ones.

    Each record is answered by ``{"id", "plan", "milliseconds", "planner", "attempts", "error"}``;
    one that is itself bad by an empty plan and an ``error`` that says why.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}.") from error
    records = [line for line in lines if line.strip()]
    bad = 0
    with progress_bar("Planning", len(records)) as advance:
        for answer in _answers(records, toolbox, planner):
            bad += answer["error"] is not None
            target.write(json.dumps(answer, ensure_ascii=False) + "\n")
            advance(1)
    return len(records), bad


def _answers(records: list[bytes], toolbox: Toolbox, planner: Planner) -> Iterator[dict[str, Any]]:
    for line in records:
        answer: dict[str, Any] = {
            "id": None,
            "plan": "",
            "milliseconds": 0.0,
            "planner": planner.name,
            "attempts": 0,
            "error": None,
        }
        try:
            decoded = json.loads(line)
            answer["id"] = _id_of(decoded)
            result = planner.plan(QueryRecord.read(decoded).request(toolbox))
            answer["plan"] = str(result.plan)
            answer["milliseconds"] = round(result.milliseconds, 3)
            answer["planner"] = result.planner + (" (fallback)" if result.fallback else "")
            answer["attempts"] = result.attempts
        except (InputError, RecursionError) as error:
            answer["error"] = str(error) or "The record is nested too deeply."
        except ValueError as error:
            answer["error"] = f"The line is no JSON: {error}."
        yield answer


def _id_of(decoded: Any) -> str | int | None:
    """Return the record's id.

    Raises:
        InputError: It cannot be written again.
    """
    found = decoded.get("id") if isinstance(decoded, dict) else None
    if isinstance(found, str):
        try:
            found.encode()
        except UnicodeEncodeError as error:
            raise InputError("id: it is not valid Unicode text.") from error
        return found
    return found if isinstance(found, int) and not isinstance(found, bool) else None
