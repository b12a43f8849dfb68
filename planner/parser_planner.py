"""Planning by the trained plan parser, without a language model, also for tools it never saw."""

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
from casewright.planner.parser.example_cases import GIVEN, PlanCase
from casewright.planner.parser.plan_reading import write_plan
from casewright.planner.parser.runtime import ParserRuntime, open_runtime
from casewright.planner.parser.weights import FOLDER, read_card
from casewright.planner.plan import Plan, QuestionRef
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import ReusePlanner, ScoredPlan, explain_confidence
from casewright.planner.wordings import CaseWordings
from casewright.stores import Case, CaseStore, default_encoder
from casewright.tools import NO_EVIDENCE

#: Most plan cases that are read; of more, a random sample.
CASES = 240
#: Of fewer plan cases than FEWEST, the weight of a plan's probability with them beside that
#: without: on the toolboxes for validation fewer cases alone make plans slightly worse.
CASE_SHARE = 0.3
#: Plan cases that must agree on one plan to be followed, where their tools are the whole toolbox.
AGREEING = 4
#: Confidence in the plan of a case that a message repeats word by word: 37 of 37 such plans are
#: right in docs/fine-tuning.md, at least 0.9 (Wilson).
WORDED = 0.9
#: Plan cases that an election needs: in all, and for each tool sequence.
FEWEST, EACH = 40, 8
#: Ridge penalty; addend of a share; and weight of its logarithm beside a plan's: chosen on the
#: legal domain's 60 questions, cross-validated.
PENALTY, LEAST, WEIGHT = 0.3, 0.05, 2.0


class ParserReuse:
    """Reads plans by the plan parser, which takes the tools as an input.

    Plan cases help without any training: a message that repeats a case's question word by word,
    except for the literals, gets that case's plan.

    Args:
        store: Plan cases; see ``plan_store``. Read once, when this is made.
        folder: The folder that ``casewright finetune parser`` wrote; by default the one that ships.
        torch: Run the network in torch, as in training.

    Raises:
        InputError: There is no parser. When it plans: its weights do not fit, or a toolbox has
            more tools than it reads.
    """

    def __init__(self, store: CaseStore | None, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._card = read_card(folder)
        # The case of a follow-up depends on turns that are not here.
        every = [] if store is None else store.all()
        cases = [case for case in every if "history" not in case.metadata]
        self._wordings = CaseWordings(cases)
        self._cases = _plan_cases(cases)
        self._agreed = _agreed([case.plan for case in self._cases])
        self._election = ToolElection(self._cases)

    @cached_property
    def runtime(self) -> ParserRuntime:
        """The parser, loaded at the first use; readers of one folder share it."""
        return _opened(self._folder)

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the likeliest first; see ``PlanSource``."""
        if (plan := self._wordings.plan(request)) is not None:
            yield ScoredPlan(
                plan, WORDED, because="a plan case has the same words but for its literals"
            )
        if self._agreed and {*request.toolbox.names} == {*self._agreed.tools, NO_EVIDENCE.name}:
            yield ScoredPlan(self._agreed, because="all plan cases have this plan")
        if 0 < len(self._cases) < FEWEST:
            plans = _mixed(self._parsed(request, ()), self._parsed(request, self._cases))
        else:
            plans = self._parsed(request, self._cases)
        if plans and self._election.decides:
            more = self._election.scores(request.question, [plan.tools for plan, _ in plans])
            best = plans[0][1]
            ranked = sorted(zip(plans, more, strict=True), key=lambda pair: -pair[0][1] - pair[1])
            # The elected plan is as sure as the one that the parser alone would have taken.
            plans = [(ranked[0][0][0], best), *(pair for pair, _ in ranked[1:])]
        for n, (plan, score) in enumerate(plans):
            confidence = self._card.confidence(score)
            because = explain_confidence("the parser", [math.exp(score) for _, score in plans[n:]])
            asks_back = confidence < self._card.asks_below
            yield ScoredPlan(plan, confidence, asks_back, because, score)

    def _parsed(self, request: PlanRequest, cases: Sequence[PlanCase]) -> list[tuple[Plan, float]]:
        """Return the parser's plans with their log-probabilities, the likeliest first."""
        prepared = self.runtime.prepare(request.toolbox, cases)
        message, plans = self.runtime.plans(
            prepared, request.question, request.context, request.max_steps, request.beyond
        )
        return [(write_plan(plan.steps, prepared.schema, message), plan.score) for plan in plans]


class ParserPlanner(ReusePlanner):
    """Plans by the plan parser; see ``ParserReuse``."""

    def __init__(self, store: CaseStore | None = None, folder: Path = FOLDER) -> None:
        reuse = ParserReuse(store, folder)
        # Weights that do not fit are refused before the first question.
        _ = reuse.runtime
        name = "parser" if folder == FOLDER else f"parser:{folder}"
        super().__init__(name, HistoryReuse(reuse))


_opened = lru_cache(maxsize=2)(open_runtime)


def _plan_cases(cases: Sequence[Case]) -> list[PlanCase]:
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


def _mixed(
    without: Sequence[tuple[Plan, float]], with_cases: Sequence[tuple[Plan, float]]
) -> list[tuple[Plan, float]]:
    """Return plans with the log of their mixed probabilities, the likeliest first."""
    scores: dict[Plan, float] = {}
    for plans, weight in ((without, 1 - CASE_SHARE), (with_cases, CASE_SHARE)):
        for plan, score in plans:
            one_run = score + math.log(weight)
            scores[plan] = float(np.logaddexp(scores.get(plan, -math.inf), one_run))
    return sorted(scores.items(), key=lambda pair: -pair[1])


def _agreed(plans: Sequence[Plan]) -> Plan | None:
    """Return the plan that many cases agree on, if it takes nothing but the question."""
    if len(plans) < AGREEING or len(set(plans)) > 1:
        return None
    values = [value for step in plans[0].steps for _, value in step.arguments]
    return plans[0] if all(isinstance(value, QuestionRef) for value in values) else None


class ToolElection:
    """Predicts a tool sequence by ridge regression, where many plan cases share few of them."""

    def __init__(self, cases: Sequence[PlanCase]) -> None:
        self._cases = cases
        self._sequences = sorted({case.plan.tools for case in cases})

    @property
    def decides(self) -> bool:
        """True where there are cases enough for each tool sequence."""
        return len(self._cases) >= max(FEWEST, EACH * len(self._sequences))

    @cached_property
    def _weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of embeddings (dimensions, sequences), and the sequences' shares."""
        questions = [case.question for case in self._cases]
        vectors = np.asarray(default_encoder().embed(questions), dtype=np.float64)
        labels = [[case.plan.tools == tools for tools in self._sequences] for case in self._cases]
        shares = np.array(labels, dtype=np.float64)
        mean = shares.mean(0)
        kernel = vectors @ vectors.T + PENALTY * np.eye(len(vectors))
        return vectors.T @ np.linalg.solve(kernel, shares - mean), mean

    def scores(self, question: str, sequences: Sequence[tuple[str, ...]]) -> list[float]:
        """Return what to add to the log-probabilities of plans with these tool sequences."""
        weights, mean = self._weights
        shares = np.asarray(default_encoder().embed([question]))[0] @ weights + mean
        by_sequence = dict(zip(self._sequences, shares.tolist(), strict=True))
        return [WEIGHT * math.log(max(by_sequence.get(s, 0.0), 0.0) + LEAST) for s in sequences]
