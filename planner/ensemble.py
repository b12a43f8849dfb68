"""Planning by the plan parser and a language model together: each ranks the other's plans.

The parser's likeliest plans and the plan that the model writes are candidates; the one with the
highest weighted sum of both log-probabilities is taken. That is rescoring of an n-best list
(Schwartz and Austin 1991), a product of two experts (Hinton 2002). Where the parser alone is sure,
the model is not asked: a cascade (Viola and Jones 2001).
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

from threadpoolctl import get_cached_controller

from casewright.planner.fallback import in_place_of
from casewright.planner.named import ENSEMBLE
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult, milliseconds_since
from casewright.planner.reuse import (
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
#: The parser's plans that are candidates: with six, plans are right no more often.
CANDIDATES = 3
#: Longest prompt that the model is asked with, in tokens: its training had none longer.
LONGEST = 4096
#: Largest margin over the next candidate that counts, in nats; that of the only candidate.
MARGIN = 20.0


@dataclass(frozen=True, slots=True)
class EnsembleCard:
    """Constants that ``casewright finetune ensemble`` chose on the toolboxes for validation.

    Attributes:
        weight: Of the model's log-probability, beside the parser's.
        sure: Confidence of the parser from which the model is not asked.
        intercept, score, margin: Coefficients of the logistic curve from a plan's score and its
            margin over the next to its probability of being right.
        asks_below: Below this confidence, ask the user what was meant.
    """

    weight: float
    sure: float
    intercept: float
    score: float
    margin: float
    asks_below: float

    @classmethod
    def read(cls, path: Path = CARD) -> EnsembleCard:
        """Return the card that ships."""
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
    """A plan, and its log-probabilities by the parser and by the model.

    The parser's is that of its least likely candidate where the plan is the model's alone.

    Attributes:
        confidence: The parser's; ``None`` where the plan is the model's alone.
    """

    plan: Plan
    parser: float
    model: float
    confidence: float | None


class EnsemblePlanner:
    """Plans by the plan parser and a language model; see the module.

    Args:
        parser: Makes plans with scores, as ``ParserReuse`` does.
        load: Returns the planner that writes plans by the model; called when it is first asked.
    """

    def __init__(
        self,
        parser: PlanSource,
        load: Callable[[], ModelPlanner],
        card: EnsembleCard | None = None,
        name: str = ENSEMBLE,
    ) -> None:
        self.name = name
        self._parser = parser
        self._alone = ReusePlanner(self.name, parser)
        self._load = load
        self._lock = threading.Lock()
        self._loaded: ModelPlanner | None = None
        self._card = card or EnsembleCard.read()

    @property
    def _model(self) -> ModelPlanner:
        with self._lock:
            if (model := self._loaded) is None:
                model = self._loaded = self._load()
            return model

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan with the highest joint score; the parser's if the model fails."""
        started = time.perf_counter()
        if request.failures:
            return self._alone.plan(request)
        scored_plans, error = self._outcome(request)
        result = first_valid(self.name, scored_plans, request, started)
        if error is None:
            return result
        spent = milliseconds_since(started)
        return in_place_of(self.name, error, result, milliseconds=spent)

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the likeliest first; see ``PlanSource``.

        If the model fails, they are the parser's.
        """
        return self._outcome(request)[0]

    def _outcome(self, request: PlanRequest) -> tuple[Iterator[ScoredPlan], Exception | None]:
        """Return plans, and the model's error if they are the parser's for that reason."""
        scored_plans = self._parser_plans(request)
        try:
            if scored_plans and self._decides(scored_plans[0], request):
                return iter(scored_plans), None
            return self._ranked(self._candidates(request, scored_plans)), None
        except Exception as error:  # noqa: BLE001 - a planner never raises for its model
            return map(self._unconfirmed, scored_plans), error

    def _unconfirmed(self, scored: ScoredPlan) -> ScoredPlan:
        """Return a plan of the parser that asks back below the ensemble's threshold."""
        confidence = scored.confidence
        unsure = confidence is not None and confidence < self._card.asks_below
        return scored._replace(asks_back=scored.asks_back or unsure)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, from a thread of its own."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))

    def candidates(self, request: PlanRequest) -> list[CandidatePlan]:
        """Return the plans that are ranked, those of the parser first, in its order.

        Raises:
            CasewrightError: The model failed; see ``ModelPlanner.ranked``.
        """
        return self._candidates(request, self._parser_plans(request))

    def _parser_plans(self, request: PlanRequest) -> list[ScoredPlan]:
        # As in ReusePlanner: one thread. Torch has threads of its own.
        with get_cached_controller().limit(limits=1, user_api="blas"):
            return list(islice(valid_plans(self._parser, request), CANDIDATES))

    def _decides(self, first: ScoredPlan, request: PlanRequest) -> bool:
        """Return whether the parser's likeliest plan is taken without the model."""
        sure = first.confidence is None or first.confidence >= self._card.sure
        # The parser does not read history.
        if sure and not request.history:
            return True
        return self._model.prompt_tokens(request) > LONGEST

    def _candidates(
        self, request: PlanRequest, scored_plans: Sequence[ScoredPlan]
    ) -> list[CandidatePlan]:
        by_plan = {scored.plan: scored for scored in reversed(scored_plans)}
        scores = self._model.ranked(request, list(dict.fromkeys(r.plan for r in scored_plans)))
        by_parser = {
            plan: scored.score
            for plan, scored in by_plan.items()
            if scored.score is not None and not request.history
        }
        least = min(by_parser.values(), default=0.0)
        return [
            CandidatePlan(
                plan,
                by_parser.get(plan, least),
                score,
                by_plan[plan].confidence if plan in by_plan else None,
            )
            for plan, score in scores.items()
        ]

    def _ranked(self, candidates: Sequence[CandidatePlan]) -> Iterator[ScoredPlan]:
        """Yield candidates as scored plans, the likeliest first."""
        card = self._card
        ranked = ranked_by(candidates, card.weight)
        best = ranked[0][1]
        weights = [math.exp(score - best) for _, score in ranked]
        shares = [weight / sum(weights) for weight in weights]
        for number, (plan, score) in enumerate(ranked):
            confidence = card.confidence(score, margin(ranked[number:]))
            first, *others = shares[number:]
            because = f"of {len(ranked)} candidates it has a share of {first:.2g}"
            because += f", the next {others[0]:.2g}" if others else ""
            yield ScoredPlan(plan, confidence, confidence < card.asks_below, because, score)


def ranked_by(candidates: Sequence[CandidatePlan], weight: float) -> list[tuple[Plan, float]]:
    """Return plans with their scores, the highest first: the weighted sum of log-probabilities."""
    scored = [(each.plan, each.parser + weight * each.model) for each in candidates]
    return sorted(scored, key=lambda pair: -pair[1])


def margin(ranked: Sequence[tuple[Plan, float]]) -> float:
    """Return the first plan's margin over the next, in nats, at most ``MARGIN``."""
    return min(MARGIN, ranked[0][1] - ranked[1][1]) if len(ranked) > 1 else MARGIN
