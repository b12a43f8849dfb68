"""A conversation with a compiled graph."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casewright.planner.request import Turn

if TYPE_CHECKING:
    from casewright.graph import Approve
    from casewright.graph.build import Graph

#: Maximum number of turns in the history; questions seldom refer to earlier ones.
MAX_TURNS = 20


class Dialogue:
    """A conversation with a graph in one scope; it stores the turns, which the graph does not.

    Args:
        graph: The graph, with a checkpointer if ``replies`` is given.
        scope: The user's scope.
        turns: Earlier turns.
        replies: Returns a person's replies to the values of all pending interrupts. Without it, an
            interrupt is an error.
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
        run_context = RunContext(scope=self._scope, limits=self._limits, approve=self._approve)
        result: dict[str, Any] = self._graph.invoke(inputs, config, context=run_context)
        while self._replies is not None and (interrupts := result.get("__interrupt__")):
            replies = self._replies([interrupt.value for interrupt in interrupts])
            by_id = {item.id: reply for item, reply in zip(interrupts, replies, strict=True)}
            result = self._graph.invoke(Command(resume=by_id), config, context=run_context)
        turn = Turn(question=question, answer=Answer.from_state(result).text)
        self.turns = [*self.turns, turn][-MAX_TURNS:]
        return result
