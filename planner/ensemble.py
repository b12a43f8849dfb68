"""Planning by the plan parser and a language model together: each scores the other's plans.

The candidates are the parser's most probable plans and the plan that the model writes; the result
is the candidate with the highest weighted sum of both log-probabilities. This is rescoring of an
n-best list (Schwartz and Austin 1991) by a product of two experts (Hinton 2002). If the parser is
confident, the model is not called: a cascade (Viola and Jones 2001).
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.planner.fallback import fallback_result
from casewright.planner.named import ENSEMBLE
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult, milliseconds_since
from casewright.planner.reuse import (
    ONE_BLAS_THREAD,
    PlanSource,
    ReusePlanner,
    ScoredPlan,
    first_valid,
    valid_plans,
)
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.model_planner import ModelPlanner

CARD = Path(__file__).with_name("ensemble.json")
#: Default maximum number of the parser's plans to rank; a maximum of six gives no better results.
MAX_PARSER_CANDIDATES = 3
#: Maximum number of tokens of a prompt for the model, as in the model's training.
MAX_PROMPT_TOKENS = 4096
#: Maximum margin of a plan over the next plan, in nats; also the margin if there is one plan only.
MAX_MARGIN = 20.0


@dataclass(frozen=True, slots=True)
class EnsembleCard:
    """Constants that ``casewright finetune ensemble`` chose on the validation toolboxes.

    Attributes:
        weight: Weight of the model's log-probability; the parser's log-probability has weight 1.
        sure: Minimum confidence of the parser at which the model is not called.
        intercept: Intercept of the logistic curve that gives the probability of a right plan.
        score: Coefficient of the plan's score in this curve.
        margin: Coefficient of the plan's margin over the next plan in this curve.
        asks_below: Confidence below which the user is asked what was meant.
    """

    weight: float
    sure: float
    intercept: float
    score: float
    margin: float
    asks_below: float

    @classmethod
    def read(cls, path: Path = CARD) -> EnsembleCard:
        """Return the card in a file, by default the packaged card."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path = CARD) -> None:
        """Write the card."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    def confidence(self, score: float, margin: float) -> float:
        """Return the probability that a plan is right."""
        logit = self.intercept + self.score * score + self.margin * margin
        return (1 + math.tanh(logit / 2)) / 2


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """A plan that the ensemble ranks.

    Attributes:
        parser_score: The parser's log-probability of the plan; if only the model proposes the plan,
            the lowest log-probability of the parser's plans. 0 if the request has history.
        model_score: The model's log-probability of the plan.
        confidence: The parser's confidence in the plan; ``None`` if only the model proposes it.
    """

    plan: Plan
    parser_score: float
    model_score: float
    confidence: float | None


class EnsemblePlanner:
    """A planner with both the plan parser and a language model, as the module's docstring says.

    Args:
        parser: Source of plans with scores, such as ``ParserReuse`` for the plan parser.
        load: Returns the model's planner; it is called at the first use of the model.
        card: The constants; by default the packaged card.
        parser_candidates: Maximum number of the parser's plans among the candidates.
    """

    def __init__(
        self,
        parser: PlanSource,
        load: Callable[[], ModelPlanner],
        card: EnsembleCard | None = None,
        name: str = ENSEMBLE,
        parser_candidates: int = MAX_PARSER_CANDIDATES,
    ) -> None:
        self.name = name
        self._parser = parser
        self._parser_planner = ReusePlanner(self.name, parser)
        self._load = load
        self._parser_candidates = parser_candidates
        self._lock = threading.Lock()
        self._loaded_model: ModelPlanner | None = None
        self._card = card or EnsembleCard.read()

    @property
    def _model(self) -> ModelPlanner:
        with self._lock:
            if (model := self._loaded_model) is None:
                model = self._loaded_model = self._load()
            return model

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the best candidate; the parser's plan if the model fails or calls have failed."""
        started = time.perf_counter()
        if request.failures:
            return self._parser_planner.plan(request)
        scored_plans, error = self._plans_and_error(request)
        result = first_valid(self.name, scored_plans, request, started)
        if error is None:
            return result
        elapsed_ms = milliseconds_since(started)
        return fallback_result(self.name, error, result, milliseconds=elapsed_ms)

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans, the most probable first; only the parser's plans if the model fails."""
        return self._plans_and_error(request)[0]

    def _plans_and_error(
        self, request: PlanRequest
    ) -> tuple[Iterator[ScoredPlan], Exception | None]:
        """Return plans and ``None``; if the model fails, the parser's plans and the error."""
        parser_plans = self._parser_plans(request)
        try:
            if parser_plans and self._parser_suffices(parser_plans[0], request):
                return iter(parser_plans), None
            return self._ranked_plans(self._candidates(request, parser_plans)), None
        except Exception as error:  # noqa: BLE001 - a planner must not raise a model's error
            return map(self._asking_back_if_unsure, parser_plans), error

    def _asking_back_if_unsure(self, scored: ScoredPlan) -> ScoredPlan:
        """Return the plan; ``asks_back`` is also True if the confidence is below ``asks_below``."""
        confidence = scored.confidence
        is_unsure = confidence is not None and confidence < self._card.asks_below
        return scored._replace(asks_back=scored.asks_back or is_unsure)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, which runs in a daemon thread."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))

    def candidates(self, request: PlanRequest) -> list[CandidatePlan]:
        """Return the plans to rank: first the parser's in the parser's order, then the model's.

        See ``ModelPlanner.ranked`` for the errors of a model that fails.
        """
        return self._candidates(request, self._parser_plans(request))

    def _parser_plans(self, request: PlanRequest) -> list[ScoredPlan]:
        # Only the parser runs with one BLAS thread: torch has threads of its own for the model.
        with ONE_BLAS_THREAD:
            return list(islice(valid_plans(self._parser, request), self._parser_candidates))

    def _parser_suffices(self, top_plan: ScoredPlan, request: PlanRequest) -> bool:
        """Return True if the parser is sure of its plan, or if the model's prompt is too long."""
        # A plan without a confidence counts as sure. The parser does not read history.
        is_sure = top_plan.confidence is None or top_plan.confidence >= self._card.sure
        if is_sure and not request.history:
            return True
        return self._model.prompt_tokens(request) > MAX_PROMPT_TOKENS

    def _candidates(
        self, request: PlanRequest, parser_plans: Sequence[ScoredPlan]
    ) -> list[CandidatePlan]:
        # Of equal plans, the parser's first one counts.
        scored_by_plan = {scored.plan: scored for scored in reversed(parser_plans)}
        model_scores = self._model.ranked(request, [*dict.fromkeys(s.plan for s in parser_plans)])
        parser_scores = {
            plan: scored.score
            for plan, scored in scored_by_plan.items()
            if scored.score is not None and not request.history
        }
        lowest_score = min(parser_scores.values(), default=0.0)
        return [
            CandidatePlan(
                plan,
                parser_scores.get(plan, lowest_score),
                model_score,
                scored_by_plan[plan].confidence if plan in scored_by_plan else None,
            )
            for plan, model_score in model_scores.items()
        ]

    def _ranked_plans(self, candidates: Sequence[CandidatePlan]) -> Iterator[ScoredPlan]:
        """Yield candidates as scored plans, the most probable first."""
        card = self._card
        ranked = ranked_by(candidates, card.weight)
        best_score = ranked[0][1]
        ratios = [math.exp(score - best_score) for _, score in ranked]
        shares = [ratio / sum(ratios) for ratio in ratios]
        for number, (plan, score) in enumerate(ranked):
            confidence = card.confidence(score, margin(ranked[number:]))
            because = f"of {len(ranked)} candidates it has a share of {shares[number]:.2g}"
            if number + 1 < len(shares):
                because += f", the next {shares[number + 1]:.2g}"
            yield ScoredPlan(plan, confidence, confidence < card.asks_below, because, score)


def ranked_by(candidates: Sequence[CandidatePlan], weight: float) -> list[tuple[Plan, float]]:
    """Return plans with their weighted sums of log-probabilities, the highest first."""
    scores = [(c.plan, c.parser_score + weight * c.model_score) for c in candidates]
    return sorted(scores, key=lambda pair: -pair[1])


def margin(ranked: Sequence[tuple[Plan, float]]) -> float:
    """Return the first plan's margin over the second, in nats, at most ``MAX_MARGIN``."""
    return min(MAX_MARGIN, ranked[0][1] - ranked[1][1]) if len(ranked) > 1 else MAX_MARGIN
