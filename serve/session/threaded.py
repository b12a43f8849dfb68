"""Planners and generators that compute in threads, so that they do not block an event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from contextvars import copy_context

from casewright.graph import ChatGenerator, Generation, GenerationRequest, Generator
from casewright.planner import ChatPlanner, Planner, PlanRequest, PlanResult


class _ThreadedPlanner:
    """A planner that computes in a thread, since even the case planner blocks for milliseconds."""

    def __init__(self, planner: Planner, threads: Executor) -> None:
        self._planner = planner
        self._threads = threads
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        return self._planner.plan(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        loop = asyncio.get_running_loop()
        # A copy of this context has the parent span.
        run = copy_context().run
        return await loop.run_in_executor(self._threads, run, self._planner.plan, request)


class _ThreadedGenerator:
    """A generator that computes in a thread."""

    def __init__(self, generator: Generator, threads: Executor) -> None:
        self._generator = generator
        self._threads = threads
        self.name = generator.name

    def generate(self, request: GenerationRequest) -> Generation:
        return self._generator.generate(request)

    async def agenerate(self, request: GenerationRequest) -> Generation:
        loop = asyncio.get_running_loop()
        run = copy_context().run
        return await loop.run_in_executor(self._threads, run, self._generator.generate, request)


def run_in_threads(
    planner: Planner, generator: Generator, threads: Executor
) -> tuple[Planner, Generator]:
    """Return a planner and a generator that do not block the event loop."""
    if not isinstance(planner, ChatPlanner):
        planner = _ThreadedPlanner(planner, threads)
    if not isinstance(generator, ChatGenerator):
        generator = _ThreadedGenerator(generator, threads)
    return planner, generator
