"""A conversation with a compiled graph: one question after the other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.request import Turn, check_context, check_history

if TYPE_CHECKING:
    from casewright.graph import Approve
    from casewright.graph.build import Graph

#: Maximal number of turns that are kept; questions seldom refer to earlier ones.
KEPT = 20


class Dialogue:
    """Conversation with a graph in one scope, which keeps the turns, since the graph does not.

    Args:
        graph: The graph, with a checkpointer if ``replies`` is given.
        scope: The user's scope.
        turns: Earlier turns.
        replies: Returns a person's replies to the values of all pending interrupts; without this
            function an interrupt is an error.
        limits: The budgets of each question.
        approve: Plans that need approval; see ``build_graph``.
    """

    def __init__(
        self,
        graph: Graph,
        scope: Mapping[str, str],
        turns: Sequence[Turn] = (),
        *,
        replies: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
        limits: Mapping[str, Any] | None = None,
        approve: Approve = "declared",
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._replies = replies
        self._limits = limits
        self._approve = approve
        self.turns: list[Turn] = list(turns)

    def ask(self, question: str, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return the graph's state after an answer; a failed question adds no turn."""
        from langgraph.types import Command

        from casewright.graph import Answer, RunContext

        inputs: Any = {"question": question, "context": dict(context), "history": self.turns}
        config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        run = RunContext(scope=self._scope, limits=self._limits, approve=self._approve)
        result: dict[str, Any] = self._graph.invoke(inputs, config, context=run)
        while self._replies is not None and (pauses := result.get("__interrupt__")):
            replies = self._replies([pause.value for pause in pauses])
            by_id = {pause.id: reply for pause, reply in zip(pauses, replies, strict=True)}
            result = self._graph.invoke(Command(resume=by_id), config, context=run)
        turn = Turn(question=question, answer=Answer.from_state(result).text)
        self.turns = [*self.turns, turn][-KEPT:]
        return result


def read_history(file: Path | None) -> list[Turn]:
    """Return the earlier turns in a JSON file; empty without a file."""
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
    """Return the context in a JSON text, empty without a text; raise ``InputError`` if invalid."""
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
