"""Nodes of a graph, and the metadata of a run for LangSmith and any callback handler.

Every run within the graph has the tag ``casewright``. Metadata names run, plan and step, under keys
of our own, since an embedding team's metadata stands beside it. Of the scope, which identifies the
user, it has only the fields' names; of the context, nothing. The inputs and outputs that LangGraph
hands to handlers hold question, context and answer all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs, set_config_context
from langgraph.config import get_config

from casewright.graph.state import run_context
from casewright.tools.body import Body, arun, run

#: The name of the graph's run, and the tag of all runs within it.
NAME = TAG = "casewright"
RUN, PLANNER, PLAN = "casewright_run_id", "casewright_planner", "casewright_plan"
SCOPE, STEP, TOOL = "casewright_scope", "casewright_step", "casewright_tool"

Task = TypeVar("Task")


class BodyNode(RunnableLambda[Any, Any]):
    """A node whose blocking and awaiting forms have one body, which returns the update."""

    def __init__(self, body: Callable[[Any], Body[dict[str, Any]]]) -> None:
        def blocking(state: Any) -> dict[str, Any]:
            return run(body(state))

        async def awaiting(state: Any) -> dict[str, Any]:
            return await arun(body(state))

        super().__init__(blocking, afunc=awaiting, name=body.__name__)


class TracedNode(BodyNode):
    """A node with metadata of its run; ``planned`` if the state holds this run's plan."""

    def __init__(self, body: Callable[[Any], Body[dict[str, Any]]], *, planned: bool) -> None:
        super().__init__(body)
        self.planned = planned

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node."""
        return super().invoke(input, self._described(input, config), **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node, without blocking the event loop."""
        return await super().ainvoke(input, self._described(input, config), **kwargs)

    def _described(self, state: Any, config: RunnableConfig | None) -> RunnableConfig:
        metadata: dict[str, Any] = {SCOPE: sorted(map(str, run_context().scope))}
        # Before, the state of a thread is that of its last question.
        if self.planned:
            metadata[RUN], metadata[PLAN] = state["run_id"], state["plan"]
            metadata[PLANNER] = state["planning"]["name"]
        return merge_configs(config, {"metadata": metadata})


def in_step(step: str, tool: str, start: Callable[[], Task]) -> Task:
    """Start a step's task so that its trace, and the runs of its tool, name step and tool."""
    config = get_config()
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager):
        return start()
    copied = manager.copy()
    copied.add_metadata({STEP: step, TOOL: tool})
    with set_config_context({**config, "callbacks": copied}) as context:
        return context.run(start)
