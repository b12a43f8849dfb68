"""From an annotation sheet to annotated queries; empty plans may be a chat model's.

Nothing is lost: what is right is added to the output, and every other line of the sheet, word for
word, is written to a file of its own, to be filled in and given again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.evaluation import MULTI_STEP, plan_class
from casewright.finetune.queries.no_answer import MOST_FAILURES
from casewright.finetune.queries.query_files import ResumedLines, read_text
from casewright.planner import AnnotatedQuery, ChatPlanner, PlanRequest, QueryRecord
from casewright.planner.spans import normalized
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
    """Return whether a record's plan is still to be written."""
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


@dataclass(slots=True)
class AnnotationReport:
    """The results of checking a sheet.

    Attributes:
        added: Annotated queries that were written, those by the model included.
        problems: A line that was not taken each, in the sheet's order.
        stopped: Why the model was asked no more; empty where it was.
    """

    added: int = 0
    by_model: int = 0
    already: int = 0
    problems: list[Problem] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    stopped: str = ""

    @property
    def wrong(self) -> int:
        """Lines that were filled in, and wrongly."""
        return sum(not problem.empty for problem in self.problems)


def sheet_lines(sheet: Path) -> list[tuple[int, str]]:
    """Return the numbers and texts of a sheet's lines that are not blank.

    Raises:
        InputError: It cannot be read, or has none.
    """
    numbered = enumerate(read_text(sheet).split("\n"), 1)
    lines = [(number, line) for number, line in numbered if line.strip()]
    if not lines:
        raise InputError(f"{sheet} is empty. Give a sheet, as casewright finetune sample makes it.")
    return lines


def annotate(
    lines: list[tuple[int, str]],
    output: ResumedLines,
    toolbox: Toolbox,
    classes: Collection[str] = (),
    *,
    planner: ChatPlanner | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> AnnotationReport:
    """Check the lines of a sheet, and write those that are right.

    Args:
        lines: Of the sheet; see ``sheet_lines``.
        output: Where annotated queries are added; those that it holds are not asked for again.
        toolbox: The tools that plans may use.
        classes: Classes that are known beside the tools' names.
        planner: Writes the plans that are empty. It must have no fallback planner: a plan that is
            not the model's own, or is invalid after one repair, is not taken.

    Raises:
        InputError: The output cannot be written.
    """
    report = AnnotationReport()
    known = {_key(record) for record in output.records}
    failures = 0
    for number, text in lines:
        record: Any = None
        problem: Problem | None = None
        try:
            record = json.loads(text)
            request_of(record, toolbox)
            if _key(record) in known:
                report.already += 1
                continue
            if by_model := is_empty(record):
                why, answered = report.stopped, True
                if planner is not None and not why:
                    record, why, answered = _ask(planner, record, toolbox)
                failures = 0 if answered else failures + 1
                if failures == MOST_FAILURES:
                    report.stopped = f"It failed {MOST_FAILURES} times in a row. {why}"
                if is_empty(record):
                    problem = _unfilled(number, record, why)
                    continue
            right = checked_record(record, toolbox, classes)
        except (PlanError, InputError, ValueError, RecursionError) as error:
            problem = _problem(number, record, error)
        else:
            output.append(right)
            known.add(_key(right))
            report.added += 1
            report.by_model += by_model
        finally:
            if problem is not None:
                report.problems.append(problem)
                report.rest.append(text)
            advance(1)
    return report


def rest_file(output: Path, given: Path | None = None) -> Path:
    """Return where lines that were not taken are written: a file that is not there yet.

    What stands in an earlier one may be somebody's work.

    Raises:
        InputError: The one that was given is there.
    """
    if given is not None:
        if given.exists():
            raise InputError(f"--rest {given} is there already. Choose a new file for the rest.")
        return given
    path, number = output.with_suffix(".rest.jsonl"), 1
    while path.exists():
        number += 1
        path = output.with_suffix(f".rest-{number}.jsonl")
    return path


def write_rest(place: Path, report: AnnotationReport) -> None:
    """Write the lines that were not taken, word for word.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in report.rest)
    except OSError as error:
        raise InputError(f"{place} cannot be written: {error.strerror}.") from error


def _ask(
    planner: ChatPlanner, record: Mapping[str, Any], toolbox: Toolbox
) -> tuple[Mapping[str, Any], str, bool]:
    """Return the record with the model's plan, if any, why there is none, and whether it answered.

    A planner without a fallback planner counts its own last resort as an attempt.
    """
    result = planner.plan(request_of(record, toolbox))
    if result.fallback:
        return record, result.fallback, result.attempts > 1
    return {**record, "plan": str(result.plan), "plan_by": result.planner}, "", True


def _unfilled(line: int, record: Mapping[str, Any], why: str) -> Problem:
    name = str(record.get("id") or "")
    if not why:
        return Problem(line, name, "The plan is empty.", "Write it, or give --model.", empty=True)
    return Problem(line, name, why, "Write the plan, or ask another model.", empty=True)


def _problem(line: int, record: Any, error: Exception) -> Problem:
    if record is None:
        return Problem(line, "", f"The line is no JSON: {error}.", "Correct it.")
    return problem_of(line, record, error)


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    return str(record.get("id")), normalized(str(record["query"]))
