"""Converts a public set's records to evaluation items; a record that does not fit is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.plan_shape import plan_class
from casewright.finetune.tool_sets.calls import Unfit, valid_request
from casewright.planner import AnnotatedQuery, Plan, QueryRecord
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Converted:
    """A set in the plan language: the items, and each refused record's id with the reason."""

    items: Sequence[EvaluationItem]
    refused: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, records: Iterable[tuple[str, Callable[[], EvaluationItem]]]) -> Converted:
        """Convert records: each is an id with a function that gives an item or raises ``Unfit``."""
        items: list[EvaluationItem] = []
        refused: list[tuple[str, str]] = []
        for id_, convert in records:
            try:
                items.append(convert())
            except Unfit as unfit:
                refused.append((id_, str(unfit)))
        return cls(items, refused)

    def to_json(self) -> dict[str, Any]:
        """Return counts, and refused ids by reason, the most frequent first, as JSON types."""
        reasons = dict(Counter(reason for _, reason in self.refused).most_common())
        ids = {why: [id_ for id_, reason in self.refused if reason == why] for why in reasons}
        return {
            "records": len(self.items) + len(self.refused),
            "converted": len(self.items),
            "refused": reasons,
            "refused_ids": ids,
        }


def to_item(id_: str, question: str, toolbox: Toolbox, plan: Plan) -> EvaluationItem:
    """Return the item of a question and its gold plan; ``Unfit`` if either is not valid."""
    # Some gold plans have more steps than a request allows by default.
    request = valid_request(question, toolbox, plan, max_steps=16)
    record = QueryRecord(id=id_, query=question)
    return EvaluationItem(AnnotatedQuery(record, plan, plan_class(plan)), request)


def read_json(path: Path) -> Any:
    """Return the content of a set's JSON file; ``InputError`` if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}. Give the set's own folder with --data."
        ) from error
