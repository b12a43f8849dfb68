"""Planning by the trained plan parser, without a language model, also for tools it never saw."""

from __future__ import annotations

import random
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Literal

from casewright.errors import PlanError
from casewright.planner.fallback import fallback_plan
from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import GIVEN, PlanCase
from casewright.planner.parser.runtime import ParserRuntime, open_runtime
from casewright.planner.parser.weights import FOLDER, ParserCard, read_card
from casewright.planner.parser.writing import written
from casewright.planner.plan import Plan
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.stores import CaseStore

#: Plan cases that are read; of more, a random draw.
CASES = 240
#: Plans that are told beside the likeliest.
ALTERNATIVES = 2


class ParserPlanner:
    """Points a whole plan out in the message and the toolbox.

    Tools are an input: their cards are read once and kept. Plan cases help without any training.

    Args:
        store: Plan cases; see ``plan_store``. Read once, at the first plan.
        folder: Where ``casewright finetune parser`` wrote a parser; by default the one that ships.
        follow_ups: Plans where there are earlier turns, which a parser does not read.
        runtime: ``torch`` runs the network as it is trained, to compare with; it plans the same.

    Raises:
        InputError: There is no parser, or its weights do not fit.
    """

    def __init__(
        self,
        store: CaseStore | None = None,
        folder: Path = FOLDER,
        *,
        follow_ups: Planner | None = None,
        runtime: Literal["onnx", "torch"] = "onnx",
    ) -> None:
        self.name = "parser" if folder == FOLDER else f"parser:{folder}"
        self._follow_ups = follow_ups
        self._card, self._runtime = _opened(folder, torch=runtime == "torch")
        self._store = store
        self._cases: list[PlanCase] | None = None
        self._lock = threading.Lock()

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest plan, how sure it is, and others; see ``Planner``."""
        if request.history and self._follow_ups is not None:
            return self._follow_ups.plan(request)
        started = time.perf_counter()
        prepared = self._runtime.prepare(request.toolbox, self._known())
        message, readings = self._runtime.plans(
            prepared, request.question, request.context, request.max_steps
        )
        plans: list[tuple[Plan, float]] = []
        reason = "The plan parser found no plan that this request allows."
        for reading in readings:
            plan = written(reading.steps, prepared.schema, message)
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            plans.append((plan, reading.score))
        milliseconds = (time.perf_counter() - started) * 1000
        if not plans:
            fallback = fallback_plan(request)
            return PlanResult(fallback, self.name, 1, reason, milliseconds, confidence=0.0)
        plan, score = plans[0]
        sure = self._card.confidence(score)
        return PlanResult(
            plan,
            self.name,
            milliseconds=milliseconds,
            confidence=sure,
            asks_back=sure < self._card.asks_below,
            alternatives=tuple(other for other, _ in plans[1 : ALTERNATIVES + 1]),
        )

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes some milliseconds and does not wait for anything."""
        return self.plan(request)

    def _known(self) -> list[PlanCase]:
        with self._lock:
            if self._cases is None:
                self._cases = [] if self._store is None else _read(self._store)
            return self._cases


@lru_cache(maxsize=2)
def _opened(folder: Path, *, torch: bool) -> tuple[ParserCard, ParserRuntime]:
    return read_card(folder), open_runtime(folder, torch=torch)


def _read(store: CaseStore) -> list[PlanCase]:
    """Return a store's plan cases, without those of follow-ups."""
    cases = [case for case in store.all() if "history" not in case.metadata]
    if len(cases) > CASES:
        cases = random.Random(0).sample(cases, CASES)
    return [
        PlanCase(
            str(case.problem["question"]),
            parse_plan(str(case.solution)),
            dict.fromkeys(case.metadata.get("context", ()), GIVEN),
        )
        for case in cases
    ]
