"""Planning by reuse of plan cases; it needs no language model."""

from __future__ import annotations

import asyncio
import time

from casewright.errors import InputError
from casewright.planner.fallback import fallback_plan
from casewright.planner.history import HistoryReuse
from casewright.planner.parser_planner import ParserReuse
from casewright.planner.reader import Reader
from casewright.planner.request import PlanRequest, PlanResult, milliseconds_since
from casewright.planner.reuse import PlanSource, ReusePlanner
from casewright.planner.sub_query_reuse import SubQueryReuse
from casewright.stores import CaseStore
from casewright.tools.deadline import start_daemon


class CasePlanner(ReusePlanner):
    """Reuses plan cases, and adapts their literals to the question.

    With a reader, the planner combines sub-queries of plan cases. The reader finds sub-queries with
    vectors similar to the question's vectors. For tools on which the reader was not trained, the
    source ``untrained`` makes the plans. Without a reader, the plan parser makes the plans, with
    the plan cases as examples.

    Args:
        store: Store of plan cases, made by ``plan_store``. It is not read if there is a reader,
            since the reader has learned the plan cases.
        reader: A reader that was trained on these plan cases.
        untrained: Source of plans for untrained tools; by default the plan parser.

    Raise ``InputError`` if there is neither a store nor a reader.
    """

    def __init__(
        self,
        store: CaseStore | None,
        reader: Reader | None = None,
        *,
        untrained: PlanSource | None = None,
    ) -> None:
        if reader is None and store is None:
            raise InputError("A case planner needs plan cases or a reader. Give one of them.")
        sub_query_reuse = None if reader is None else SubQueryReuse(reader, untrained)
        # ``untrained`` may call a language model, which takes seconds.
        self._slow_source = sub_query_reuse if untrained is not None else None
        super().__init__("case", HistoryReuse(sub_query_reuse or ParserReuse(store)))

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the most probable valid plan, or a fallback plan; see ``Planner``."""
        started = time.perf_counter()
        try:
            return super().plan(request)
        except InputError as error:
            # The toolbox has more tools than the plan parser can read. Other planners fall back to
            # this planner, so it must not raise an error.
            plan, elapsed_ms = fallback_plan(request), milliseconds_since(started)
            return PlanResult(
                plan, self.name, fallback=str(error), milliseconds=elapsed_ms, confidence=0.0
            )

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, in a daemon thread if ``untrained`` may take seconds."""
        if self._slow_source is None or not self._slow_source.untrained_tools(request):
            return self.plan(request)
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))
