"""Conversion of a public set's records to items, with the reasons of refused ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.plan_shape import plan_class
from casewright.finetune.records import read_values
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, QueryRecord
from casewright.tools import Toolbox


class ConversionError(Exception):
    """A record that the plan language cannot express; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A set in the plan language: its items, and the ids and reasons of refused records."""

    items: Sequence[EvaluationItem]
    refused: Sequence[tuple[str, str]]

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.items) + len(self.refused)

    @property
    def reasons(self) -> dict[str, int]:
        """Reason to the number of records that were refused for it, the most frequent first."""
        return dict(Counter(reason for _, reason in self.refused).most_common())

    def to_json(self) -> dict[str, Any]:
        """Return the counts, JSON-plain."""
        return {
            "records": self.records,
            "converted": len(self.items),
            "refused": self.reasons,
            "refused_ids": {
                reason: [id_ for id_, own in self.refused if own == reason]
                for reason in self.reasons
            },
        }


def to_item(id_: str, question: str, toolbox: Toolbox, plan: Plan) -> EvaluationItem:
    """Return the item of a record's question and gold plan; its class is the plan's.

    Raises:
        ConversionError: The plan is not valid for the question, or the question is unusable.
    """
    try:
        request = PlanRequest(question, toolbox, max_steps=16)
        request.validate(plan)
    except PlanError as error:
        raise ConversionError(f"the gold calls contradict the tools: {_kind_of(error)}") from error
    except InputError as error:
        raise ConversionError(f"the question cannot be asked: {error}") from error
    record = QueryRecord(id=id_, query=question)
    return EvaluationItem(AnnotatedQuery(record, plan, plan_class(plan)), request)


def _kind_of(error: PlanError) -> str:
    """Return the check that failed, without the names of this record."""
    value = "a value of another type or choice than declared"
    for words, kind in (
        ("needs the argument", "a required argument is missing"),
        ("has no parameter", "an argument that the tool does not declare"),
        *((words, value) for words in ("may not be", "of its choices", " is a ", " is an ")),
        ("results of", "a field that the tool does not declare"),
        ("There is no tool", "a tool that is not in the specification"),
        ("earlier step", "a reference to no earlier step"),
        ("steps; at most", "too many steps"),
    ):
        if words in error.rule:
            return kind
    return error.rule


def read_json(path: Path) -> Any:
    """Read a JSON file of a set; raise ``InputError`` if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}. Give the set's own folder with --data."
        ) from error


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file of a set.

    Raises:
        InputError: It cannot be read, or a line is no JSON object; names the line.
    """
    records = []
    for _, location, record in read_values(path):
        if not isinstance(record, dict):
            raise InputError(f"{location}: no JSON object. Give the set's own folder with --data.")
        records.append(record)
    return records
