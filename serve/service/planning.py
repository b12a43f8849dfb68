"""Reuses the plans of retained answers for similar questions."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor

from casewright.errors import CasewrightError
from casewright.planner import Literal, Plan, parse_plan
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.serve.service.answers import AnswerStore

#: A plan is reused only if the similarity of the two questions is at least this.
MIN_SIMILARITY = 0.9


class PlanReusingPlanner:
    """A planner that reuses the plan of a tenant's retained answer to nearly the same question.

    If a literal text of the plan is in the earlier question, it must also be in the new question.
    ``planner`` plans all other requests, and any request with a history, context or failed steps.
    """

    def __init__(self, planner: Planner, answers: AnswerStore, tenant: str, pool: Executor) -> None:
        self._planner = planner
        self._answers = answers
        self._tenant = tenant
        self._pool = pool
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan of a retained answer, or a new plan."""
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
            texts = [text.casefold() for text in _literal_texts(plan)]
            if not all(text in question for text in texts if text in earlier_question):
                return None
            request.validate(plan)
        except CasewrightError:
            # A store that does not answer, or an invalid plan, leads to a new plan.
            return None
        milliseconds = (time.perf_counter() - start_time) * 1000
        return PlanResult(plan, planner=f"earlier:{hit.case.id}", milliseconds=milliseconds)


def _literal_texts(plan: Plan) -> list[str]:
    """Return the literal texts in a plan's arguments, including items of lists."""
    literals = [arg for step in plan.steps for arg in step.scalars() if isinstance(arg, Literal)]
    return [literal.value for literal in literals if isinstance(literal.value, str)]
