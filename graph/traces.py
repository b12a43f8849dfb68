"""Metadata of a run for LangSmith and any callback handler, beside its inputs and outputs.

Every run within the graph has the tag ``casewright``. Metadata says which run, plan and step it is
about, under names of our own, since an embedding team's metadata stands beside it. Of the scope,
which says who asks, only the fields' names are told; of the context, nothing. The inputs and
outputs that LangGraph hands to handlers hold question, context and answer all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, set_config_context
from langgraph.config import get_config

from casewright.graph.body_node import BodyNode
from casewright.graph.run_context import run_context
from casewright.tools.body import Body

#: The name of the graph's run, and the tag of all runs within it.
NAME = TAG = "casewright"
RUN, PLANNER, PLAN = "casewright_run_id", "casewright_planner", "casewright_plan"
SCOPE, STEP, TOOL = "casewright_scope", "casewright_step", "casewright_tool"

Made = TypeVar("Made")


class TracedNode(BodyNode):
    """A node whose trace says what it is about.

    Args:
        body: See ``BodyNode``.
        planned: Whether the state holds this run's plan by then.
    """

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
        said: dict[str, Any] = {SCOPE: sorted(map(str, run_context().scope))}
        # Before, the state of a thread is that of its last question.
        if self.planned:
            said |= {
                RUN: state["run_id"],
                PLANNER: state["planning"]["name"],
                PLAN: state["plan"],
            }
        return merge_configs(config, {"metadata": said})


def in_step(step: str, tool: str, start: Callable[[], Made]) -> Made:
    """Start a step's task so that its trace, and what its tool calls, name step and tool."""
    config = get_config()
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager):
        return start()
    own = manager.copy()
    own.add_metadata({STEP: step, TOOL: tool})
    with set_config_context({**config, "callbacks": own}) as context:
        return context.run(start)
