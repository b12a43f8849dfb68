"""Planning by reuse of plan cases, without a language model."""

from __future__ import annotations

import time
from itertools import islice

from casewright.errors import InputError, PlanError
from casewright.planner.ask_reuse import AskReuse
from casewright.planner.fallback import fallback_plan
from casewright.planner.history import HistoryReuse, Reuse
from casewright.planner.history.readings import valid
from casewright.planner.reader import Reader
from casewright.planner.request import PlanRequest, PlanResult
from casewright.planner.shape_reuse import ShapeReuse
from casewright.stores import CaseStore

#: Plans that are tried before the fallback plan.
ATTEMPTS = 16
#: Plans that are told beside the likeliest.
ALTERNATIVES = 2
#: Less sure than this of a plan, it asks back: measured on the first questions of the shop's
#: conversations that are for tuning, 4 of 48, of which 3 plans are wrong.
ASKS_BELOW = 0.6


class CasePlanner:
    """Reuses plan cases, their literals adapted to the question.

    With a reader, plan cases are taken apart into asks, and those that the question is near to, in
    the space that the reader was trained to span, are joined. Without one, the case of the plan
    shape that a linear model elects is adapted as a whole.

    Args:
        store: Plan cases; see ``plan_store``. Read once, when the planner is made, and only where
            there is no reader: a reader holds what it learned from its cases.
        reader: A trained reader of these plan cases.

    Raises:
        InputError: There is neither.
    """

    name = "case"

    def __init__(self, store: CaseStore | None, reader: Reader | None = None) -> None:
        if reader is not None:
            reuse: Reuse = AskReuse(reader)
        elif store is not None:
            reuse = ShapeReuse(store)
        else:
            raise InputError("A case planner needs plan cases or a reader. Give one of them.")
        self._reuse = HistoryReuse(reuse)

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the best plan that passes the static checks, or a fallback; see ``Planner``."""
        started = time.perf_counter()
        attempts = 0
        reason = "No plan case uses only the tools and the context of this request."
        readings = islice(self._reuse.readings(request), ATTEMPTS)
        for plan, confidence in readings:
            attempts += 1
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            others = (other for other, _ in readings if other != plan and valid(other, request))
            return PlanResult(
                plan,
                self.name,
                attempts,
                confidence=confidence,
                asks_back=confidence is not None and confidence < ASKS_BELOW,
                alternatives=tuple(dict.fromkeys(islice(others, ALTERNATIVES))),
                milliseconds=_since(started),
            )
        return PlanResult(fallback_plan(request), self.name, attempts + 1, reason, _since(started))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes a few milliseconds and does not wait for anything."""
        return self.plan(request)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
