"""Planning by the trained plan parser, which works with any tools and needs no language model."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright.planner.history import HistoryReuse
from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import PLACEHOLDER, PlanCase
from casewright.planner.parser.plan_reading import write_plan
from casewright.planner.parser.runtime import ParserRuntime, open_runtime
from casewright.planner.parser.weights import FOLDER, read_card
from casewright.planner.plan import Plan, QuestionRef
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import ReusePlanner, ScoredPlan, explain_confidence
from casewright.planner.wordings import CaseWordings
from casewright.stores import Case, CaseStore, default_encoder
from casewright.tools import NO_EVIDENCE

#: Maximum number of plan cases that the parser reads. If there are more, it reads a random sample.
MAX_CASES = 240
#: With fewer than ``MIN_CASES`` cases, a plan's probability is a mean of its probabilities with
#: and without cases. The weight with cases is low, since few cases make plans slightly worse.
CASE_SHARE = 0.3
#: If there are at least this many plan cases and all have the same plan, that plan comes first.
MIN_AGREEING_CASES = 4
#: Confidence in the plan of a case if a message repeats the case's question word by word. In
#: docs/fine-tuning.md, 37 of 37 such plans are right; the lower bound of Wilson's interval is 0.9.
REPEATED_CONFIDENCE = 0.9
#: Minimum numbers of plan cases for the regression: in all, and on average per tool sequence.
MIN_CASES, MIN_CASES_PER_SEQUENCE = 40, 8
#: Ridge penalty of the regression. This and the next two numbers were chosen by cross-validation on
#: 60 questions of a domain (docs/decisions/010-plan-parser.md).
RIDGE_PENALTY = 0.3
#: Addend to a predicted share, before its logarithm is taken.
SMOOTHING = 0.05
#: Weight of this logarithm when it is added to a plan's log-probability.
LOG_WEIGHT = 2.0


class ParserReuse:
    """Source of the plan parser's plans, for any tools: the parser reads the tools as an input.

    Plan cases are an input too; they need no training. If a message repeats a case's question word
    by word, except for the literals, the message gets the case's plan.

    Args:
        store: Plan cases; see ``plan_store``. They are read once, in the constructor.
        folder: Output folder of ``casewright finetune parser``; by default the packaged parser's.

    Raises:
        InputError: There is no parser in the folder. Planning raises this error if the parser's
            weights do not fit, or a toolbox has more tools than the parser reads.
    """

    def __init__(self, store: CaseStore | None, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._card = read_card(folder)
        # Cases of follow-ups are left out, since the parser does not read earlier turns.
        all_cases = [] if store is None else store.all()
        cases = [case for case in all_cases if "history" not in case.metadata]
        self._wordings = CaseWordings(cases)
        self._cases = _sampled_cases(cases)
        self._common_plan = _common_plan([case.plan for case in self._cases])
        self._regression = ToolSequenceRegression(self._cases)

    @cached_property
    def runtime(self) -> ParserRuntime:
        """The parser, loaded at the first use and shared by objects with the same folder."""
        return _cached_runtime(self._folder)

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the most probable first; see ``PlanSource``."""
        if (plan := self._wordings.plan(request)) is not None:
            because = "a plan case has the same words but for its literals"
            yield ScoredPlan(plan, REPEATED_CONFIDENCE, because=because)
        common_plan = self._common_plan
        # The toolbox must have no tools besides the plan's and ``no_evidence``.
        if common_plan and {*request.toolbox.names} == {*common_plan.tools, NO_EVIDENCE.name}:
            yield ScoredPlan(common_plan, because="all plan cases have this plan")
        # Plans with their log-probabilities.
        pairs = self._plans(request, self._cases)
        if 0 < len(self._cases) < MIN_CASES:
            pairs = _mixture(self._plans(request, ()), pairs)
        if pairs and self._regression.has_enough_cases:
            sequences = [plan.tools for plan, _ in pairs]
            addends = self._regression.addends(request.question, sequences)
            totals = {pair: pair[1] + addend for pair, addend in zip(pairs, addends, strict=True)}
            (first_plan, _), *others = sorted(pairs, key=lambda pair: -totals[pair])
            # The first plan gets the log-probability of the plan that the parser ranked first.
            pairs = [(first_plan, pairs[0][1]), *others]
        for index, (plan, score) in enumerate(pairs):
            confidence = self._card.confidence(score)
            probabilities = [math.exp(log_probability) for _, log_probability in pairs[index:]]
            because = explain_confidence("the parser", probabilities)
            asks_back = confidence < self._card.asks_below
            yield ScoredPlan(plan, confidence, asks_back, because, score)

    def _plans(self, request: PlanRequest, cases: Sequence[PlanCase]) -> list[tuple[Plan, float]]:
        """Return the parser's plans with their log-probabilities, the most probable first."""
        prepared = self.runtime.prepare(request.toolbox, cases)
        # All plan cases decide how arguments are written, even if ``cases`` is empty.
        conventions = self.runtime.prepare(request.toolbox, self._cases).conventions
        message, plans = self.runtime.plans(
            prepared,
            request.question,
            request.context,
            request.max_steps,
            request.excess,
            conventions,
        )
        scores: dict[Plan, float] = {}
        for plan in plans:
            # The conventions may make two plans equal; the first is the most probable.
            scores.setdefault(write_plan(plan.steps, prepared.schema, message), plan.score)
        return list(scores.items())


class ParserPlanner(ReusePlanner):
    """Plans by the plan parser; see ``ParserReuse``."""

    def __init__(self, store: CaseStore | None = None, folder: Path = FOLDER) -> None:
        reuse = ParserReuse(store, folder)
        # Load the parser, so that unsuitable weights are refused before the first question.
        _ = reuse.runtime
        name = "parser" if folder == FOLDER else f"parser:{folder}"
        super().__init__(name, HistoryReuse(reuse))


_cached_runtime = lru_cache(maxsize=2)(open_runtime)


def _sampled_cases(cases: Sequence[Case]) -> list[PlanCase]:
    if len(cases) > MAX_CASES:
        cases = random.Random(0).sample(cases, MAX_CASES)
    return [
        PlanCase(
            str(case.problem["question"]),
            parse_plan(str(case.solution)),
            dict.fromkeys(case.metadata.get("context", ()), PLACEHOLDER),
        )
        for case in cases
    ]


def _mixture(
    without_cases: Sequence[tuple[Plan, float]], with_cases: Sequence[tuple[Plan, float]]
) -> list[tuple[Plan, float]]:
    """Return plans with the log of their mean probability (``CASE_SHARE``), the highest first."""
    scores: dict[Plan, float] = {}
    for plans, weight in ((without_cases, 1 - CASE_SHARE), (with_cases, CASE_SHARE)):
        for plan, score in plans:
            weighted = score + math.log(weight)
            scores[plan] = float(np.logaddexp(scores.get(plan, -math.inf), weighted))
    return sorted(scores.items(), key=lambda pair: -pair[1])


def _common_plan(plans: Sequence[Plan]) -> Plan | None:
    """Return the plan of all cases; ``None`` for few cases, or arguments besides the question."""
    if len(plans) < MIN_AGREEING_CASES or len(set(plans)) > 1:
        return None
    values = [value for step in plans[0].steps for _, value in step.arguments]
    return plans[0] if all(isinstance(value, QuestionRef) for value in values) else None


class ToolSequenceRegression:
    """Scores a plan's sequence of tools by ridge regression on the plan cases' questions."""

    def __init__(self, cases: Sequence[PlanCase]) -> None:
        self._cases = cases
        self._sequences = sorted({case.plan.tools for case in cases})

    @property
    def has_enough_cases(self) -> bool:
        """True if there are enough cases in all, and on average for each tool sequence."""
        return len(self._cases) >= max(MIN_CASES, MIN_CASES_PER_SEQUENCE * len(self._sequences))

    @cached_property
    def _coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Regression weights (dimensions, sequences), and each sequence's share of the cases."""
        questions = [case.question for case in self._cases]
        vectors = np.asarray(default_encoder().embed(questions), dtype=np.float64)
        labels = [[case.plan.tools == tools for tools in self._sequences] for case in self._cases]
        targets = np.array(labels, dtype=np.float64)
        shares = targets.mean(0)
        kernel = vectors @ vectors.T + RIDGE_PENALTY * np.eye(len(vectors))
        return vectors.T @ np.linalg.solve(kernel, targets - shares), shares

    def addends(self, question: str, sequences: Sequence[tuple[str, ...]]) -> list[float]:
        """Return the addends to the log-probabilities of plans with these tool sequences."""
        weights, shares = self._coefficients
        predictions = np.asarray(default_encoder().embed([question]))[0] @ weights + shares
        share_by_sequence = dict(zip(self._sequences, predictions.tolist(), strict=True))
        plan_shares = [max(share_by_sequence.get(sequence, 0.0), 0.0) for sequence in sequences]
        return [LOG_WEIGHT * math.log(share + SMOOTHING) for share in plan_shares]
