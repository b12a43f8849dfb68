"""Computing off the event loop, for whoever serves several requests on one."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from casewright.graph import ChatGenerator, Generation, GenerationRequest, Generator
from casewright.planner import ChatPlanner, Planner, PlanRequest, PlanResult


class ThreadedPlanner:
    """A planner whose computation leaves the event loop to other requests.

    The case planner's async twin computes where it is: some milliseconds in which no other request
    would move.
    """

    def __init__(self, planner: Planner, threads: Executor) -> None:
        self._planner = planner
        self._threads = threads
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the planner's plan."""
        return self._planner.plan(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same, in one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._planner.plan, request)


class ThreadedGenerator:
    """A generator whose computation leaves the event loop to other requests."""

    def __init__(self, generator: Generator, threads: Executor) -> None:
        self._generator = generator
        self._threads = threads
        self.name = generator.name

    def generate(self, request: GenerationRequest) -> Generation:
        """Return the generator's answer."""
        return self._generator.generate(request)

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """The same, in one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._generator.generate, request)


def off_loop(
    planner: Planner, generator: Generator, threads: Executor
) -> tuple[Planner, Generator]:
    """Return both so that they leave the event loop to others; chat models do so by themselves."""
    return (
        planner if isinstance(planner, ChatPlanner) else ThreadedPlanner(planner, threads),
        generator
        if isinstance(generator, ChatGenerator)
        else ThreadedGenerator(generator, threads),
    )
