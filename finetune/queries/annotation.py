"""Checks an annotation sheet: a file of queries, for which a person writes plans.

Correct lines become annotated queries in the output. All other lines are copied to a second file,
which a person can complete and use as the next sheet.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.evaluation import MULTI_STEP, plan_class
from casewright.finetune.queries.query_files import QueryFile, read_text
from casewright.planner import AnnotatedQuery, QueryRecord
from casewright.planner.spans import normalized
from casewright.stores.case import check_text
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a line of a sheet is not yet an annotated query, and how to mend it.

    ``line`` counts from 1. ``empty`` is true if the line's only problem is an empty plan.
    """

    line: int
    id: str
    reason: str
    mend: str
    empty: bool = False


def sheet_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query as a record of a sheet, with empty fields for the annotation."""
    blank = {"id": record.get("id"), "query": record["query"], "context": {}}
    return {**blank, **record, "plan": record.get("plan", ""), "class": record.get("class", "")}


def checked_record(
    record: Mapping[str, Any], toolbox: Toolbox, classes: Collection[str]
) -> dict[str, Any]:
    """Check a sheet's record, and return it with a canonical plan and a class.

    Valid classes are ``classes``, the tools' names and ``MULTI_STEP``.

    Raises:
        PlanError: The plan is not in the plan language, or not valid for its request.
        InputError: A field is malformed, the id has no UTF-8 form, or the class is unknown.
    """
    request = QueryRecord.read(record).request(toolbox)
    check_text(str(record.get("id")))
    if not isinstance(plan := record.get("plan"), str):
        raise InputError(f"The plan is {type(plan).__name__}, not text. Write it as one text.")
    query = AnnotatedQuery.read({**record, "class": record.get("class") or ""})
    request.validate(query.plan)
    valid_classes = {*classes, *request.toolbox.names, MULTI_STEP}
    label = query.label.strip() or plan_class(query.plan)
    if label not in valid_classes:
        raise InputError(
            f"There is no class {label!r}. Write one of {', '.join(sorted(valid_classes))}, or "
            "leave the class empty: the plan then determines it."
        )
    return {**record, "plan": str(query.plan), "class": label}


@dataclass(slots=True)
class AnnotationReport:
    """The results of checking a sheet.

    Attributes:
        added_count: Number of new annotated queries in the output.
        known_count: Number of lines whose id and query were in the output already.
        problems: The problem of each line in ``rest``.
        rest: The lines that are not yet annotated queries.
    """

    added_count: int = 0
    known_count: int = 0
    problems: list[Problem] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    @property
    def wrong_count(self) -> int:
        """Number of problems other than a missing plan."""
        return sum(not problem.empty for problem in self.problems)


def sheet_lines(sheet: Path) -> list[tuple[int, str]]:
    """Return the numbers and texts of a sheet's lines; ``InputError`` if all lines are blank."""
    numbered = enumerate(read_text(sheet).split("\n"), 1)
    lines = [(number, line) for number, line in numbered if line.strip()]
    if not lines:
        raise InputError(f"{sheet} is empty. Give a sheet, as casewright finetune sample makes it.")
    return lines


def annotate(
    lines: list[tuple[int, str]],
    output: QueryFile,
    toolbox: Toolbox,
    classes: Collection[str] = (),
) -> AnnotationReport:
    """Add the correct ``lines`` of a sheet to the output, except queries that it already has.

    ``classes`` are further valid classes, as in ``checked_record``.
    """
    report = AnnotationReport()
    output_keys = {_record_key(record) for record in output.records}
    for number, text in lines:
        record: Any = ...  # stays an ellipsis if the text is not JSON
        try:
            record = json.loads(text)
            # A malformed record is a problem, even if its plan is empty.
            QueryRecord.read(record).request(toolbox)
            if _record_key(record) in output_keys:
                report.known_count += 1
                continue
            has_plan = bool(str(record.get("plan") or "").strip())
            query = checked_record(record, toolbox, classes) if has_plan else None
        except (PlanError, InputError, ValueError, RecursionError) as error:
            problem = _problem(number, record, error)
        else:
            if query is not None:
                output.append(query)
                output_keys.add(_record_key(query))
                report.added_count += 1
                continue
            id_ = str(record.get("id") or "")
            problem = Problem(number, id_, "The plan is empty.", "Write it.", empty=True)
        report.problems.append(problem)
        report.rest.append(text)
    return report


def rest_file(output: Path, path: Path | None = None) -> Path:
    """Return a new file for the remaining lines: ``path``, or a file beside the output."""
    if path is None:
        suffixes = chain([".rest.jsonl"], (f".rest-{number}.jsonl" for number in count(2)))
        return next(file for file in map(output.with_suffix, suffixes) if not file.exists())
    if path.exists():
        raise InputError(f"--rest {path} exists already. Choose a new file for the rest.")
    return path


def _problem(line: int, record: Any, error: Exception) -> Problem:
    if record is ...:
        return Problem(line, "", f"The line is no JSON: {error}.", "Correct it.")
    given_id = record.get("id") if isinstance(record, Mapping) else None
    id_ = "" if given_id is None else str(given_id)
    cause = error if isinstance(error, PlanError) else error.__cause__
    if isinstance(cause, PlanError):
        return Problem(line, id_, f"{cause.step or 'plan'}: {cause.rule}", cause.mend)
    # A message of Casewright states what is wrong, then what to do.
    reason, full_stop, mend = str(error).partition(". ")
    return Problem(line, id_, reason + (full_stop and "."), mend or "Correct the record.")


def _record_key(record: Mapping[str, Any]) -> tuple[str, str]:
    return str(record.get("id")), normalized(str(record["query"]))
