"""How the service plans: off the event loop, and from kept answers where one is near."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor

from casewright.errors import CasewrightError
from casewright.graph import Generation, GenerationRequest, Generator
from casewright.planner import Planner, PlanRequest, PlanResult, parse_plan
from casewright.serve.service.answers import Answers, texts_of

#: A kept question that is less like this one asks something else.
NEAR = 0.9


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
        """The same, in one of the service's threads."""
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
        """The same, in one of the service's threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._generator.generate, request)


class EarlierPlanner:
    """Plans as for a kept answer of the same tenant whose question is nearly the same.

    The plan is used again, not the answer: evidence is looked up anew. A text that the plan took
    from the earlier question must stand in this one too. Any other question goes to the planner
    below; a question with a history does too, since it may mean something else by the same words.
    """

    def __init__(self, planner: Planner, answers: Answers, tenant: str, threads: Executor) -> None:
        self._planner = planner
        self._answers = answers
        self._tenant = tenant
        self._threads = threads
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the earlier plan, or a new one."""
        return self._earlier(request) or self._planner.plan(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, self._earlier, request)
        return found or await self._planner.aplan(request)

    def _earlier(self, request: PlanRequest) -> PlanResult | None:
        started = time.perf_counter()
        if request.history:
            return None
        try:
            hit = self._answers.nearest(self._tenant, request.question)
            if hit is None or hit.relevance < NEAR:
                return None
            plan = parse_plan(str(hit.case.solution["plan"]))
            before = str(hit.case.problem["question"]).casefold()
            now = request.question.casefold()
            taken = [text.casefold() for text in texts_of(plan) if text.casefold() in before]
            if not all(text in now for text in taken):
                return None
            request.validate(plan)
        except CasewrightError:
            # Kept answers help where they can; a question is answered without them too.
            return None
        spent = (time.perf_counter() - started) * 1000
        return PlanResult(plan, f"earlier:{hit.case.id}", 1, "", spent)
