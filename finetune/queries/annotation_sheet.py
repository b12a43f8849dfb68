"""The annotation sheet: JSON Lines to fill in, and the check of what was filled in.

A record is ``{"id", "query", "context", "plan": "", "class": ""}``, with whatever else the query
came with (``tools_extra``, for example). Plan and class are to be written; where the class is left
empty, it is taken from the plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.evaluation import MULTI_STEP, plan_class
from casewright.planner import AnnotatedQuery, PlanRequest, QueryRecord
from casewright.stores.case import check_text
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a line of a sheet is not an annotated query yet.

    Attributes:
        line: Its number, from 1.
        id: Its id, where it has one.
        empty: Nothing was filled in; otherwise what was filled in is wrong.
    """

    line: int
    id: str
    reason: str
    mend: str
    empty: bool = False


def sheet_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query as a record of a sheet; what it knows already stays filled in."""
    blank = {"id": record.get("id"), "query": record["query"], "context": {}}
    return {**blank, **record, "plan": record.get("plan", ""), "class": record.get("class", "")}


def is_empty(record: Mapping[str, Any]) -> bool:
    """Say whether a record's plan is still to be written."""
    plan = record.get("plan")
    return plan is None or (isinstance(plan, str) and not plan.strip())


def checked_record(
    record: Mapping[str, Any], toolbox: Toolbox, classes: Collection[str]
) -> dict[str, Any]:
    """Return a filled record as an annotated query: its plan in the canonical form, its class set.

    Args:
        toolbox: The tools that plans may use, but for the record's own changes to them.
        classes: Classes that are known beside the tools' names.

    Raises:
        PlanError: The plan is none, or cannot be run for its request.
        InputError: The record has another form, its id is no Unicode, or its class is not known.
    """
    request = request_of(record, toolbox)
    check_text(str(record.get("id")))
    if not isinstance(plan := record.get("plan"), str):
        raise InputError(f"The plan is {type(plan).__name__}, not text. Write it as one text.")
    read = AnnotatedQuery.read(_with_class(record))
    request.validate(read.plan)
    known = {*classes, *request.toolbox.names, MULTI_STEP}
    label = read.label.strip() or plan_class(read.plan)
    if label not in known:
        raise InputError(
            f"There is no class {label!r}. Write one of {', '.join(sorted(known))}, or leave it "
            "empty to have it taken from the plan."
        )
    return {**record, "plan": str(read.plan), "class": label}


def request_of(record: Mapping[str, Any], toolbox: Toolbox) -> PlanRequest:
    """Return the request of a record.

    Raises:
        InputError: It has another form.
    """
    return QueryRecord.read(record).request(toolbox)


def problem_of(line: int, record: Any, error: Exception) -> Problem:
    """Return the problem that an error tells of."""
    name = record.get("id") if isinstance(record, Mapping) else None
    shown = "" if name is None else str(name)
    cause = error if isinstance(error, PlanError) else error.__cause__
    if isinstance(cause, PlanError):
        return Problem(line, shown, f"{cause.step or 'plan'}: {cause.rule}", cause.mend)
    reason, stop, mend = str(error).partition(". ")
    return Problem(line, shown, reason + (stop and "."), mend or "Correct the record.")


def _with_class(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "class": record.get("class") or ""}
