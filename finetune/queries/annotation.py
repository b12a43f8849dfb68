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
from casewright.finetune.queries.annotation_sheet import (
    Problem,
    checked_record,
    is_empty,
    problem_of,
    request_of,
)
from casewright.finetune.queries.no_answer import MOST_FAILURES
from casewright.finetune.queries.query_files import read_text
from casewright.finetune.queries.resumed_lines import ResumedLines
from casewright.planner import ChatPlanner
from casewright.planner.spans import normalized
from casewright.tools import Toolbox


@dataclass(slots=True)
class AnnotationReport:
    """What became of a sheet.

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
    place, number = output.with_suffix(".rest.jsonl"), 1
    while place.exists():
        number += 1
        place = output.with_suffix(f".rest-{number}.jsonl")
    return place


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
