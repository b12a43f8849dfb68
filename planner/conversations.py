"""Annotated conversations: every turn is an annotated query with the turns before it as history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError
from casewright.planner.annotated import AnnotatedQuery


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation whose every turn has a gold plan.

    Attributes:
        id: Its name.
        turns: The turns, the earliest first, each with those before it as history.
        kinds: Of each turn, how it leans on those before it: ``first``, ``pronoun``, ``ellipsis``
            and the like.
        scope: Who speaks.
        measuring: Whether no planner may learn from it, nor be tuned on it.
    """

    id: str
    turns: tuple[AnnotatedQuery, ...]
    kinds: tuple[str, ...]
    scope: Mapping[str, str]
    measuring: bool = False

    @classmethod
    def read(cls, record: Any) -> Conversation:
        """Read a decoded JSON value: the annotated query of the last turn.

        Each turn of its ``history`` has, beside question and answer, its own ``context``, ``plan``
        and ``class``, and what else an annotated query has.

        Raises:
            InputError: It has another form, or a plan of a turn is none; names the turn.
        """
        last = AnnotatedQuery.read(record)
        history = last.record.history
        said = last.record.turns()
        turns = []
        for number, turn in enumerate(history, 1):
            own = {**turn, "query": turn["question"], "history": said[: number - 1]}
            try:
                turns.append(AnnotatedQuery.read({"id": f"{record.get('id')}.{number}", **own}))
            except InputError as error:
                raise InputError(f"turn {number}: {error}") from error
        kinds = tuple(str(turn.get("kind", "")) for turn in (*history, record))
        scope = {str(field): str(value) for field, value in (record.get("scope") or {}).items()}
        measuring = bool(record.get("measuring"))
        return cls(str(record.get("id")), (*turns, last), kinds, scope, measuring)

    @property
    def follow_ups(self) -> list[tuple[str, AnnotatedQuery]]:
        """The turns after the first, each with its kind."""
        return list(zip(self.kinds, self.turns, strict=True))[1:]
