"""Planning by the trained plan parser, without a language model, also for tools it never saw."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from casewright.planner.election import ToolElection
from casewright.planner.history import HistoryReuse
from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import GIVEN, PlanCase
from casewright.planner.parser.runtime import ParserRuntime, open_runtime
from casewright.planner.parser.weights import FOLDER, read_card
from casewright.planner.parser.writing import written
from casewright.planner.plan import Plan, QuestionRef
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reading, ReusePlanner
from casewright.planner.wordings import CaseWordings
from casewright.stores import Case, CaseStore
from casewright.tools import NO_EVIDENCE

#: Plan cases that are read; of more, a random draw.
CASES = 240
#: So many plan cases with one plan for a toolbox of one tool leave nothing to decide.
AGREEING = 4
#: Confidence in the plan of a case that a message repeats word by word: 37 of 37 such plans are
#: right in docs/fine-tuning.md, at least 0.9 (Wilson).
WORDED = 0.9


class ParserReuse:
    """Points whole plans out in a message and its toolbox.

    Tools are an input: their cards are read once and kept. Plan cases help without any training; a
    message that is one of them word by word, but for the literals, has that case's plan.

    Args:
        store: Plan cases; see ``plan_store``. Read once, when it is made.
        folder: Where ``casewright finetune parser`` wrote a parser; by default the one that ships.
        torch: Run the network as it is trained.

    Raises:
        InputError: There is no parser. When it plans: its weights do not fit, or a toolbox has
            more tools than it reads.
    """

    def __init__(
        self, store: CaseStore | None, folder: Path = FOLDER, *, torch: bool = False
    ) -> None:
        self._folder, self._torch = folder, torch
        self._card = read_card(folder)
        # The case of a follow-up leans on turns that are not here.
        every = [] if store is None else store.all()
        cases = [case for case in every if "history" not in case.metadata]
        self._wordings = CaseWordings(cases)
        self._cases = _plan_cases(cases)
        self._agreed = _agreed([case.plan for case in self._cases])
        self._election = ToolElection(self._cases)

    @cached_property
    def runtime(self) -> ParserRuntime:
        """The parser, loaded at the first use; those of one folder are one."""
        return _opened(self._folder, torch=self._torch)

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first; see ``Reuse``."""
        if (plan := self._wordings.plan(request)) is not None:
            yield Reading(plan, WORDED)
        if self._agreed and {*request.toolbox.names} == {*self._agreed.tools, NO_EVIDENCE.name}:
            yield Reading(self._agreed)
        prepared = self.runtime.prepare(request.toolbox, self._cases)
        message, readings = self.runtime.plans(
            prepared, request.question, request.context, request.max_steps
        )
        plans = [(written(one.steps, prepared.schema, message), one.score) for one in readings]
        if plans and self._election.decides:
            more = self._election.scores(request.question, [plan.tools for plan, _ in plans])
            best = plans[0][1]
            ranked = sorted(zip(plans, more, strict=True), key=lambda pair: -pair[0][1] - pair[1])
            # The elected plan is as sure as the one that the parser alone would have taken.
            plans = [(ranked[0][0][0], best), *(pair for pair, _ in ranked[1:])]
        for plan, score in plans:
            confidence = self._card.confidence(score)
            yield Reading(plan, confidence, confidence < self._card.asks_below)


class ParserPlanner(ReusePlanner):
    """Plans by the plan parser.

    Args:
        store: As for ``ParserReuse``.
        folder: As for ``ParserReuse``.
        runtime: ``torch`` runs the network as it is trained, to compare with; it plans the same.

    Raises:
        InputError: There is no parser, or its weights do not fit. When it plans: a toolbox has more
            tools than the parser reads.
    """

    def __init__(
        self,
        store: CaseStore | None = None,
        folder: Path = FOLDER,
        *,
        runtime: Literal["onnx", "torch"] = "onnx",
    ) -> None:
        reuse = ParserReuse(store, folder, torch=runtime == "torch")
        # Weights that do not fit are refused before anything is asked.
        _ = reuse.runtime
        name = "parser" if folder == FOLDER else f"parser:{folder}"
        super().__init__(name, HistoryReuse(reuse))


@lru_cache(maxsize=2)
def _opened(folder: Path, *, torch: bool) -> ParserRuntime:
    return open_runtime(folder, torch=torch)


def _plan_cases(cases: Sequence[Case]) -> list[PlanCase]:
    """Return plan cases as the parser reads them, at most ``CASES``."""
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


def _agreed(plans: Sequence[Plan]) -> Plan | None:
    """Return the one plan of many cases, if it takes nothing but the question."""
    if len(plans) < AGREEING or len(set(plans)) > 1:
        return None
    values = [value for step in plans[0].steps for _, value in step.arguments]
    return plans[0] if all(isinstance(value, QuestionRef) for value in values) else None
