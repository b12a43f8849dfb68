"""Parts of the service for benches: its retained answers as a plan cache, and its application."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from casewright.graph import ExtractiveGenerator
from casewright.planner import Plan, Planner, parse_plan
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.planning import PlanReusingPlanner
from casewright.stores import Encoder
from casewright.tools import Toolbox

TENANT = "shop"


class RetainedAnswers:
    """A tenant's retained answers in memory, as a ``Cache`` of ``bench/plan_cache.py``."""

    def __init__(self, encoder: Encoder) -> None:
        self._answers = AnswerStore(encoder, ":memory:")
        self._threads = ThreadPoolExecutor(1)

    def reusing(self, planner: Planner) -> Planner:
        """Return the service's planner, which reuses the plans of retained answers."""
        return PlanReusingPlanner(planner, self._answers, TENANT, self._threads)

    def nearest(self, question: str) -> Plan | None:
        """Return the plan of the nearest retained question, at any distance."""
        hit = self._answers.nearest(TENANT, question)
        return None if hit is None else parse_plan(str(hit.case.solution["plan"]))

    def keep(self, question: str, plan: Plan) -> None:
        """Retain a question with the plan of its answer, as if the user had approved it."""
        answer = {"text": "An answer.", "plan": str(plan), "run_id": "", "planner": {}}
        answer |= {"citations": [], "evidence": [], "missing": []}
        self._answers.retain(TENANT, question, answer, "approved")

    def close(self) -> None:
        """Close the store."""
        self._threads.shutdown()
        self._answers.close()


def soak_service(toolbox: Toolbox, planner: Planner, threads: Path) -> Any:
    """Return the service of a toolbox as an ASGI application, with its threads in a file."""
    parts = Parts("soak", toolbox, planner, ExtractiveGenerator())
    return create_app(parts, ServiceOptions(threads_file=threads, langserve=False))
