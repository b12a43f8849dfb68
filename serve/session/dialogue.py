"""A conversation with a compiled graph: one question after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.request import Turn, check_context, check_history

if TYPE_CHECKING:
    from casewright.graph.build import Graph

#: Maximum of turns kept: earlier ones are seldom referred to.
KEPT = 20


class Dialogue:
    """A conversation with a graph in one scope. It keeps the turns, which the graph does not.

    Args:
        deadline: Most seconds of each run; see ``Limits``.
    """

    def __init__(
        self,
        graph: Graph,
        scope: Mapping[str, str],
        turns: Sequence[Turn] = (),
        deadline: float | None = None,
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._limits = None if deadline is None else {"deadline": deadline}
        self.turns: list[Turn] = list(turns)

    def ask(self, question: str, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return the graph's state after an answer; a question that fails leaves no turn."""
        from casewright.graph import RunContext

        result: dict[str, Any] = self._graph.invoke(
            {"question": question, "context": dict(context), "history": self.turns},
            context=RunContext(scope=self._scope, limits=self._limits),
        )
        turn = Turn(question=question, answer=str(result["answer"]["text"]))
        self.turns = [*self.turns, turn][-KEPT:]
        return result


def read_history(file: Path | None) -> list[Turn]:
    """Read earlier turns from a JSON file; none without a file."""
    if file is None:
        return []
    try:
        turns = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"--history {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--history {file} is not JSON: {error}. Write "
            '[{"question": "…", "answer": "…"}, …], the earliest first.'
        ) from error
    check_history(turns)
    return [Turn(question=turn["question"], answer=turn["answer"]) for turn in turns]


def read_context(text: str | None) -> dict[str, Any]:
    """Read a context from JSON text, empty without one; raise ``InputError`` for other text."""
    if text is None:
        return {}
    try:
        context = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'--context is not JSON: {error}. Give an object such as {{"product_id": "P001"}}.'
        ) from error
    check_context(context)
    return dict(context)
