"""Annotated queries: questions with right plans, for training, demonstrations and evaluation.

Every turn of an annotated conversation is an annotated query, with the earlier turns as history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError, PlanError, ToolError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, Turn, check_history
from casewright.tools import Toolbox, alias, tool_from_record


class QueryRecord(BaseModel):
    """A query without its plan. ``tools_extra`` and ``tools_removed`` change its toolbox."""

    model_config = ConfigDict(extra="ignore", strict=True)

    id: str | int | None = None
    query: str
    context: dict[str, Any] = {}
    history: list[dict[str, Any]] = []
    tools_extra: list[dict[str, Any]] = []
    tools_removed: list[str] = []

    @classmethod
    def read(cls, record: Any) -> QueryRecord:
        """Return the query in a JSON value; raise ``InputError`` if a field is malformed."""
        if not isinstance(record, Mapping):
            raise InputError(f"The record is a {type(record).__name__}, not a JSON object.")
        try:
            return cls.model_validate(dict(record))
        except ValidationError as error:
            first_error = error.errors()[0]
            field_name = ".".join(map(str, first_error["loc"])) or "the record"
            raise InputError(f"{field_name}: {first_error['msg']}.") from error

    def turns(self) -> list[Turn]:
        """Return the history without plans and other annotations."""
        check_history(self.history)
        return [Turn(question=turn["question"], answer=turn["answer"]) for turn in self.history]

    def request(self, toolbox: Toolbox) -> PlanRequest:
        """Return a request to plan the query, with ``toolbox`` changed as this record says.

        Raise ``InputError`` if the record is invalid, or the toolbox lacks a tool to remove.
        """
        try:
            extended = toolbox.with_(*map(tool_from_record, self.tools_extra))
        except ToolError as error:
            raise InputError(f"tools_extra: {error}") from error
        # A name of the toolbox is kept, since ``alias`` would change names such as get_xml.
        removed = [name if name in extended else alias(name) for name in self.tools_removed]
        if unknown := [name for name in removed if name not in extended]:
            raise InputError(
                f"tools_removed: the toolbox has no {unknown}. It has {list(extended.names)}."
            )
        return PlanRequest(self.query, extended.without(*removed), self.context, self.turns())


@dataclass(frozen=True, slots=True)
class AnnotatedQuery:
    """A query with its gold plan.

    Attributes:
        label: Class of the query; evaluations report results by class.
        must: Maps ``"sN.parameter"`` to lower-case words; that literal must contain all of them.
        accept: Other tool sequences that count as right.
    """

    record: QueryRecord
    plan: Plan
    label: str = ""
    must: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accept: tuple[tuple[str, ...], ...] = ()

    @property
    def query(self) -> str:
        """Text of the question."""
        return self.record.query

    @classmethod
    def read(cls, record: Any) -> AnnotatedQuery:
        """Return the annotated query in a JSON value; raise ``InputError`` if it is malformed."""
        query = QueryRecord.read(record)
        try:
            plan = parse_plan(record["plan"])
            must = {name: _as_texts(words) for name, words in (record.get("must") or {}).items()}
            accept = tuple(_as_texts(tools) for tools in record.get("accept") or ())
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"plan, must or accept is missing or malformed: {error}.") from error
        except PlanError as error:
            raise InputError(f"plan: {error}") from error
        return cls(query, plan, str(record.get("class", "")), must, accept)


def _as_texts(value: Any) -> tuple[str, ...]:
    # A text is refused, since ``tuple`` would split it into characters.
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{value!r:.60} is not a list of texts")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Conversation with a gold plan for every turn.

    Attributes:
        turns: The turns, the earliest first; the history of a turn is the turns before it.
        kinds: How each turn depends on earlier turns, such as ``first``, ``pronoun``, ``ellipsis``.
        scope: The user's scope during the conversation.
        is_test_data: True for test data, which must not be used for training or tuning.
    """

    id: str
    turns: tuple[AnnotatedQuery, ...]
    kinds: tuple[str, ...]
    scope: Mapping[str, str]
    is_test_data: bool = False

    @classmethod
    def read(cls, record: Any) -> Conversation:
        """Return the conversation in a JSON value.

        The value is the annotated query of the last turn. Each earlier turn, in ``history``, has
        ``question``, ``answer`` and the fields of an annotated query, such as ``context``,
        ``plan`` and ``class``. The ``InputError`` for a malformed earlier turn has its number.
        """
        last_query = AnnotatedQuery.read(record)
        history, earlier_turns = last_query.record.history, last_query.record.turns()
        turns = []
        for number, turn in enumerate(history, 1):
            fields = {**turn, "query": turn["question"], "history": earlier_turns[: number - 1]}
            try:
                turns.append(AnnotatedQuery.read({"id": f"{record.get('id')}.{number}", **fields}))
            except InputError as error:
                raise InputError(f"turn {number}: {error}") from error
        kinds = tuple(str(turn.get("kind", "")) for turn in (*history, record))
        scope = {str(name): str(value) for name, value in (record.get("scope") or {}).items()}
        is_test_data = bool(record.get("measuring"))
        return cls(str(record.get("id")), (*turns, last_query), kinds, scope, is_test_data)

    @property
    def follow_ups(self) -> list[tuple[str, AnnotatedQuery]]:
        """Pairs of a kind and a turn, for the turns after the first."""
        return list(zip(self.kinds, self.turns, strict=True))[1:]


def read_annotated(path: Path) -> list[AnnotatedQuery]:
    """Read a JSON Lines file of annotated queries.

    Raise ``InputError`` if the file cannot be read, or a line is malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}.") from error
    queries = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                queries.append(AnnotatedQuery.read(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from error
    return queries
