"""Holds a conversation with a compiled graph."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from casewright.planner.request import Turn

if TYPE_CHECKING:
    from casewright.graph import Approve
    from casewright.graph.build import Graph

#: Maximum number of earlier turns; questions seldom refer to older turns.
MAX_TURNS = 20


@dataclass(eq=False)
class Dialogue:
    """A conversation with a graph in one scope; the dialogue stores the turns, the graph does not.

    Attributes:
        graph: The graph; ``get_replies`` needs a graph with a checkpointer.
        scope: The user's scope.
        turns: Earlier turns, the earliest first.
        get_replies: Returns replies to all open interrupts; by default, an interrupt is an error.
        limits: The budgets of each question; see ``RunContext``.
        approve: Plans that need approval; see ``build_graph``.
    """

    graph: Graph
    scope: Mapping[str, str]
    turns: Sequence[Turn] = ()
    _: KW_ONLY
    get_replies: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    limits: Mapping[str, Any] | None = None
    approve: Approve = "declared"

    def ask(self, question: str, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return the graph's state after the answer; a question that fails adds no turn."""
        from langgraph.types import Command

        from casewright.graph import Answer, RunContext

        inputs: Any = {"question": question, "context": dict(context), "history": list(self.turns)}
        config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        run_context = RunContext(scope=self.scope, limits=self.limits, approve=self.approve)
        result: dict[str, Any] = self.graph.invoke(inputs, config, context=run_context)
        while self.get_replies is not None and (interrupts := result.get("__interrupt__")):
            replies = self.get_replies([interrupt.value for interrupt in interrupts])
            reply_by_id = {i.id: reply for i, reply in zip(interrupts, replies, strict=True)}
            result = self.graph.invoke(Command(resume=reply_by_id), config, context=run_context)
        turn = Turn(question=question, answer=Answer.from_state(result).text)
        self.turns = [*self.turns, turn][-MAX_TURNS:]
        return result
