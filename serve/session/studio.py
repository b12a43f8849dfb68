"""Makes the graph for LangGraph's own server and Studio; ``langgraph.json`` names ``make_graph``.

LangGraph's server and LangServe cannot be installed together: langserve needs sse-starlette before
version 2, and langgraph-api needs 2.1.3 or later. Therefore this module imports nothing of the
service, and ``langgraph dev`` needs an environment without the extra ``serve``; see docs/serve.md.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import Any

_lock = threading.Lock()


async def make_graph() -> Any:
    """Open the domain that the settings choose, and return its graph without a checkpointer.

    LangGraph's server calls this function on its event loop for every run, but the graph is built
    once. Raise ``CasewrightError`` if a setting is invalid, or the domain cannot be opened.
    """
    return await asyncio.to_thread(_locked_graph)


def _locked_graph() -> Any:
    # Without the lock, two concurrent first calls would both build the graph.
    with _lock:
        return _build_once()


@cache
def _build_once() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    from casewright.graph import build_graph
    from casewright.planner.named import refuse_single_user_planner
    from casewright.serve.session.choice import read_chosen_parts
    from casewright.serve.session.session import open_chosen
    from casewright.serve.session.threaded import run_in_threads

    chosen = read_chosen_parts(None)  # without --config
    refuse_single_user_planner(chosen.planner)
    session = open_chosen(chosen)
    generator = session.generator(chosen.generator)
    pool = ThreadPoolExecutor(4, "casewright-compute")
    return build_graph(session.opened.toolbox, *run_in_threads(session.planner, generator, pool))
