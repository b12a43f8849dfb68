"""A node of a graph, made of a body: it blocks, or it is awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import RunnableLambda

from casewright.tools.body import Body, arun, run


class BodyNode(RunnableLambda[Any, Any]):
    """A node whose blocking and awaiting forms have one body.

    Args:
        body: Given the state, returns the node's update.
    """

    def __init__(self, body: Callable[[Any], Body[dict[str, Any]]]) -> None:
        def blocking(state: Any) -> dict[str, Any]:
            return run(body(state))

        async def awaiting(state: Any) -> dict[str, Any]:
            return await arun(body(state))

        super().__init__(blocking, afunc=awaiting, name=body.__name__)
