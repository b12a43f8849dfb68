"""How the service plans from kept answers, where one is near."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Executor

from casewright.errors import CasewrightError
from casewright.planner import (
    ListValue,
    Literal,
    Plan,
    Planner,
    PlanRequest,
    PlanResult,
    parse_plan,
)
from casewright.serve.service.answers import Answers

#: A kept question that is less like this one asks something else.
NEAR = 0.9


class EarlierPlanner:
    """Plans as for a kept answer of the same tenant whose question is nearly the same.

    The plan is used again, not the answer: evidence is looked up anew. A text that the plan took
    from the earlier question must stand in this one too. Any other question goes to the planner
    below; one with a history or a context does too, since it may mean something else by the same
    words.
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
        if request.history or request.context:
            return None
        try:
            hit = self._answers.nearest(self._tenant, request.question)
            if hit is None or hit.relevance < NEAR:
                return None
            plan = parse_plan(str(hit.case.solution["plan"]))
            before = str(hit.case.problem["question"]).casefold()
            now = request.question.casefold()
            taken = [text.casefold() for text in _texts_of(plan) if text.casefold() in before]
            if not all(text in now for text in taken):
                return None
            request.validate(plan)
        except CasewrightError:
            # Kept answers help where they can; a question is answered without them too.
            return None
        spent = (time.perf_counter() - started) * 1000
        return PlanResult(plan, f"earlier:{hit.case.id}", 1, "", spent)


def _texts_of(plan: Plan) -> Sequence[str]:
    """Return the texts that a plan itself gives, those inside lists too."""
    found = []
    for step in plan.steps:
        for _, value in step.arguments:
            for item in value.items if isinstance(value, ListValue) else (value,):
                if isinstance(item, Literal) and isinstance(item.value, str):
                    found.append(item.value)
    return found
