"""Proposed messages that are worth a look: valid, and unlike each other and what is there."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.queries.annotation_sheet import checked_record
from casewright.finetune.queries.seen_questions import SeenQuestions
from casewright.finetune.queries.written_queries import Dropped, UnusableError
from casewright.planner.spans import normalized
from casewright.tools import Toolbox


@dataclass(slots=True)
class Drafts:
    """What was proposed.

    Attributes:
        records: Annotated queries, to be kept or dropped by a person.
        dropped: What was left out, by reason.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[Dropped] = field(default_factory=Counter)


def worth_a_look(
    proposed: Iterable[Mapping[str, Any]], toolbox: Toolbox, seen: SeenQuestions, count: int
) -> Drafts:
    """Return the first proposals whose plans can be run and that are unlike all others.

    Args:
        proposed: Records with query, context and plan.
        toolbox: The tools that plans may use.
        seen: The questions that are there; those that are taken are added.
        count: At most how many.
    """
    made = Drafts()
    for one in proposed:
        if len(made.records) == count:
            break
        try:
            record = checked_record({"id": message_id("d", one), **one}, toolbox, ())
            seen.take(record["query"])
        except UnusableError as unusable:
            made.dropped[unusable.why] += 1
        except (PlanError, InputError):
            made.dropped[Dropped.INVALID] += 1
        else:
            made.records.append(record)
    return made


def message_id(prefix: str, record: Mapping[str, Any]) -> str:
    """Return an id by what ``message_key`` tells: the same message has the same."""
    told = json.dumps(message_key(record), sort_keys=True)
    return f"{prefix}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def message_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes a message another one: its question, what was known, who asked."""
    about = (record.get(name) or None for name in ("context", "history", "tenant"))
    return (normalized(str(record["query"])), *about)
