"""Reuses the plans of retained answers for similar questions."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor

from casewright.errors import CasewrightError
from casewright.planner import Literal, Plan, parse_plan
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.serve.service.answers import AnswerStore

#: Minimum similarity of two questions for the reuse of a plan.
MIN_SIMILARITY = 0.9


class PlanReusingPlanner:
    """A planner that reuses the plan of a tenant's retained answer to nearly the same question.

    The plan runs again. Its texts that are in the earlier question must be in the new one too.
    ``planner`` plans other questions, and all questions with a history or context.
    """

    def __init__(self, planner: Planner, answers: AnswerStore, tenant: str, pool: Executor) -> None:
        self._planner = planner
        self._answers = answers
        self._tenant = tenant
        self._pool = pool
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan of a retained answer, or a new one."""
        return self._reused_plan(request) or self._planner.plan(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan`` without blocking the event loop."""
        loop = asyncio.get_running_loop()
        reused = await loop.run_in_executor(self._pool, self._reused_plan, request)
        return reused or await self._planner.aplan(request)

    def _reused_plan(self, request: PlanRequest) -> PlanResult | None:
        start_time = time.perf_counter()
        if request.history or request.context or request.failures:
            return None
        try:
            hit = self._answers.nearest(self._tenant, request.question)
            if hit is None or hit.relevance < MIN_SIMILARITY:
                return None
            plan = parse_plan(str(hit.case.solution["plan"]))
            earlier_question = str(hit.case.problem["question"]).casefold()
            question = request.question.casefold()
            literals = [literal.casefold() for literal in _literal_texts(plan)]
            if not all(literal in question for literal in literals if literal in earlier_question):
                return None
            request.validate(plan)
        except CasewrightError:
            # A store that does not answer, or an invalid plan, leads to a new plan.
            return None
        milliseconds = (time.perf_counter() - start_time) * 1000
        return PlanResult(plan, f"earlier:{hit.case.id}", milliseconds=milliseconds)


def _literal_texts(plan: Plan) -> list[str]:
    """Return the literal texts in a plan's arguments, including items of lists."""
    values = [value for step in plan.steps for value in step.scalars()]
    return [v.value for v in values if isinstance(v, Literal) and isinstance(v.value, str)]
