"""Planning for a whole file of queries: one line in, one line out, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from casewright.errors import InputError
from casewright.planner import Planner, PlanRequest, QueryRecord
from casewright.planner.request import BatchPlanner
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox


def plan_file(source: Path, target: IO[str], toolbox: Toolbox, planner: Planner) -> tuple[int, int]:
    """Plan for every record of a JSON Lines file; return the counts of records and of bad ones.

    Each record is answered by ``{"id", "plan", "milliseconds", "planner", "attempts", "error",
    "confidence", "asks_back", "alternatives"}``; one that is itself bad by an empty plan and an
    ``error`` that says why.

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
    together = planner.batch if isinstance(planner, BatchPlanner) else 1
    for start in range(0, len(records), together):
        read = [_read(line, toolbox, planner) for line in records[start : start + together]]
        requests = [request for _, request in read if request is not None]
        if isinstance(planner, BatchPlanner):
            results = iter(planner.plan_many(requests))
        else:
            results = iter([planner.plan(request) for request in requests])
        for answer, request in read:
            if request is not None:
                result = next(results)
                answer["plan"] = str(result.plan)
                answer["milliseconds"] = round(result.milliseconds, 3)
                answer["planner"] = result.planner + (" (fallback)" if result.fallback else "")
                answer["attempts"] = result.attempts
                answer |= result.doubt()
            yield answer


def _read(
    line: bytes, toolbox: Toolbox, planner: Planner
) -> tuple[dict[str, Any], PlanRequest | None]:
    """Return the answer to a record as far as it is known, and its request if it has one."""
    answer: dict[str, Any] = {
        "id": None,
        "plan": "",
        "milliseconds": 0.0,
        "planner": planner.name,
        "attempts": 0,
        "error": None,
        "confidence": None,
        "asks_back": False,
        "alternatives": [],
    }
    try:
        decoded = json.loads(line)
        answer["id"] = _id_of(decoded)
        return answer, QueryRecord.read(decoded).request(toolbox)
    except (InputError, RecursionError) as error:
        answer["error"] = str(error) or "The record is nested too deeply."
    except ValueError as error:
        answer["error"] = f"The line is no JSON: {error}."
    return answer, None


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
