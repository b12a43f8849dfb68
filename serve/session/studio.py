"""The graph for LangGraph's own server and Studio, which ``langgraph.json`` names.

Their packages cannot share an environment with LangServe: langgraph-api needs sse-starlette 2.1.3
or later, langserve one before 2. So this imports nothing of the service, and what langgraph.json is
read by (``langgraph dev``) is installed in an environment without the extra ``serve``; see
docs/serve.md.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import Any

_opening = threading.Lock()


async def make_graph() -> Any:
    """Open the domain that the settings name, and return its graph.

    It is made once: LangGraph's server calls this for every run, on its event loop, on which it
    lets nothing block. That server brings its own checkpointer.

    Raises:
        CasewrightError: A setting cannot be, or something cannot be opened.
    """
    return await asyncio.to_thread(_opened_once)


def _opened_once() -> Any:
    # A cache lets the first two callers in.
    with _opening:
        return _opened()


@cache
def _opened() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    from casewright.graph import build_graph
    from casewright.planner.named import check_shared
    from casewright.serve.session.chosen import chosen
    from casewright.serve.session.session import open_chosen
    from casewright.serve.session.threaded import off_loop

    using = chosen(None)
    check_shared(using.planner)
    session = open_chosen(using)
    generator = session.generator(using.generator)
    threads = ThreadPoolExecutor(4, "casewright-compute")
    return build_graph(session.opened.toolbox, *off_loop(session.planner, generator, threads))
