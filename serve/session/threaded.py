"""Wraps planners and generators so that they compute in threads and block no event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import TypeVar

from casewright.graph import ChatGenerator, Generation, GenerationRequest, Generator
from casewright.planner import ChatPlanner, Planner, PlanRequest, PlanResult

T = TypeVar("T")
R = TypeVar("R")


async def _in_thread(pool: Executor, compute: Callable[[T], R], request: T) -> R:
    loop = asyncio.get_running_loop()
    # The copied context carries the current tracing span into the thread.
    return await loop.run_in_executor(pool, copy_context().run, compute, request)


class _ThreadedPlanner:
    """A planner that computes in a thread: even the small case planner takes milliseconds."""

    def __init__(self, planner: Planner, pool: Executor) -> None:
        self.name, self.plan = planner.name, planner.plan
        self._pool = pool

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return await _in_thread(self._pool, self.plan, request)


class _ThreadedGenerator:
    """A generator that computes in a thread."""

    def __init__(self, generator: Generator, pool: Executor) -> None:
        self.name, self.generate = generator.name, generator.generate
        self._pool = pool

    async def agenerate(self, request: GenerationRequest) -> Generation:
        return await _in_thread(self._pool, self.generate, request)


def run_in_threads(
    planner: Planner, generator: Generator, pool: Executor
) -> tuple[Planner, Generator]:
    """Return the planner and the generator, wrapped for threads unless they await a chat model."""
    if not isinstance(planner, ChatPlanner):
        planner = _ThreadedPlanner(planner, pool)
    if not isinstance(generator, ChatGenerator):
        generator = _ThreadedGenerator(generator, pool)
    return planner, generator
