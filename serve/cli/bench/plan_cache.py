"""The service's kept answers as the cache that ``casewright bench plan-cache`` measures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from casewright.planner import Plan, Planner, parse_plan
from casewright.serve.service.answers import Answers
from casewright.serve.service.planning import EarlierPlanner
from casewright.stores import Encoder

TENANT = "shop"


class KeptAnswers:
    """Kept answers in memory, of one tenant."""

    def __init__(self, encoder: Encoder) -> None:
        self._answers = Answers(encoder, ":memory:")
        self._threads = ThreadPoolExecutor(1)

    def reusing(self, planner: Planner) -> Planner:
        """Return the service's planner, which reuses plans of kept answers."""
        return EarlierPlanner(planner, self._answers, TENANT, self._threads)

    def nearest(self, question: str) -> Plan | None:
        """Return the plan of the nearest kept question, however far it is."""
        hit = self._answers.nearest(TENANT, question)
        return None if hit is None else parse_plan(str(hit.case.solution["plan"]))

    def keep(self, question: str, plan: Plan) -> None:
        """Keep a question with the plan that answered it, as one that its user approved."""
        answer = {
            "text": "An answer.",
            "plan": str(plan),
            "run_id": "",
            "planner": {},
            "citations": [],
            "evidence": [],
            "missing": [],
        }
        self._answers.retain(TENANT, question, answer, "approved")

    def close(self) -> None:
        """Close the store."""
        self._threads.shutdown()
        self._answers.close()
