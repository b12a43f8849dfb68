"""The config of a run inside another: in a node, a tool or a chain."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY


def nested_config(outer: RunnableConfig) -> RunnableConfig:
    """Return the config for a run inside the one that has ``outer``.

    LangGraph saves while the next node runs, by default: a run killed then would call tools again
    that have been called. So what is kept is kept at once, unless the outer run chose otherwise.
    Its bound of concurrency is for its own nodes, or for a batch, and not for a plan's steps.
    """
    own: Any = {name: value for name, value in outer.items() if name != "max_concurrency"}
    given = outer.get("configurable", {})
    if given.get(CONFIG_KEY_CHECKPOINTER):
        own["configurable"] = {CONFIG_KEY_DURABILITY: "sync", **given}
    return cast("RunnableConfig", own)
