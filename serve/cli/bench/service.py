"""The service's retained answers as a plan cache, for a benchmark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from casewright.planner import Plan, Planner, parse_plan
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.planning import PlanReusingPlanner
from casewright.stores import Encoder

TENANT = "shop"


class RetainedAnswers:
    """A tenant's retained answers in memory, as a ``Cache`` of ``bench/plan_cache.py``."""

    def __init__(self, encoder: Encoder) -> None:
        self._answers = AnswerStore(encoder, ":memory:")
        self._executor = ThreadPoolExecutor(1)

    def reusing(self, planner: Planner) -> Planner:
        """Return the service's planner, which reuses the plans of retained answers."""
        return PlanReusingPlanner(planner, self._answers, TENANT, self._executor)

    def nearest(self, question: str) -> Plan | None:
        """Return the plan of the nearest retained question at any distance, or ``None``."""
        hit = self._answers.nearest(TENANT, question)
        return None if hit is None else parse_plan(str(hit.case.solution["plan"]))

    def keep(self, question: str, plan: Plan) -> None:
        """Retain a question with the plan of its answer, as if the user had approved it."""
        # The cache uses only the question and the plan.
        answer = {"text": "An answer.", "plan": str(plan), "run_id": "", "planner": {}}
        answer |= {"citations": [], "evidence": [], "missing": []}
        self._answers.retain(TENANT, question, answer, "approved")

    def close(self) -> None:
        """End the thread and close the store."""
        self._executor.shutdown()
        self._answers.close()
