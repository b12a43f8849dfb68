"""Plans that combine sub-queries of plan cases, by beam search with a trained reader."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.planner.parser_planner import ParserReuse
from casewright.planner.plan import Plan, context_fields
from casewright.planner.reader import EncodedQuestion, Reader
from casewright.planner.reader_input import MAX_SUB_QUERIES, Span
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import PlanSource, ScoredPlan, explain_confidence, valid_plans
from casewright.planner.sub_queries import SubQuery, joined_plan, without_no_evidence
from casewright.tools import NO_EVIDENCE

#: Width of the beam, and maximum number of templates that extend each hypothesis.
BEAM_WIDTH = 4
#: Confidence below which the user is asked what was meant. Among the first questions of the shop's
#: 48 tuning conversations, 4 have a lower confidence; the plans of 3 of these 4 are wrong.
ASKS_BELOW = 0.6
#: A plan with an untrained tool may be less probable than the best plan of the same source: by up
#: to this number of nats for each nat of surprise (the reader's best log-probability, negated).
#: On the validation toolboxes and the shop, values of 15 to 30 are about equally good.
SURPRISE_WEIGHT = 20.0


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """A plan's first sub-queries; ``inputs`` are each one's template number and literals' spans."""

    score: float
    inputs: tuple[tuple[int, tuple[Span | None, ...]], ...] = ()
    sub_queries: tuple[SubQuery, ...] = ()

    @property
    def step_count(self) -> int:
        return sum(len(sub_query.steps) for sub_query in self.sub_queries)

    @property
    def ends_with_repetition(self) -> bool:
        """True if the last sub-query repeats another with its literals, and needs no prior step."""
        *earlier, last = zip(self.sub_queries, (spans for _, spans in self.inputs), strict=True)
        return last in earlier and last[0].reach == 0

    def extended(self, added_score: float, *added: SubQuery) -> _Hypothesis:
        """Return the hypothesis with one more sub-query, or with none at the message's end."""
        return _Hypothesis(self.score + added_score, self.inputs, (*self.sub_queries, *added))


#: A hypothesis, with the template number and state of its last sub-query, which ``inputs`` lacks.
_Candidate = tuple[_Hypothesis, int, NDArray[np.float32]]


class SubQueryReuse:
    """Source of plans that combine sub-queries.

    The reader's templates call only the tools of its training. For other tools, there is a second
    source, ``untrained``. Its first plan with such a tool comes before the reader's plans, if this
    plan is the second source's best, or nearly as probable as the best; see ``SURPRISE_WEIGHT``.

    Args:
        untrained: Source of plans for untrained tools; by default the plan parser.
    """

    def __init__(self, reader: Reader, untrained: PlanSource | None = None) -> None:
        self._reader = reader
        self._untrained_source = untrained
        tools = {tool for template in reader.templates for tool in template.tools}
        self._trained_tools = {NO_EVIDENCE.name, *tools}
        plans = [Plan(template.steps) for template in reader.templates]
        # For each template, the tools and the context fields that it needs.
        self._needs = [(frozenset(plan.tools), frozenset(context_fields(plan))) for plan in plans]
        self._reach = np.array([template.reach for template in reader.templates])
        self._step_counts = np.array([len(template.steps) for template in reader.templates])
        self._earlier_fields = [_earlier_fields(template) for template in reader.templates]

    @cached_property
    def _untrained(self) -> PlanSource:
        # The parser gets no plan cases: with cases, it would avoid tools that no case calls.
        return self._untrained_source or ParserReuse(None)

    def untrained_tools(self, request: PlanRequest) -> set[str]:
        """Return the names of the tools that the reader was not trained on."""
        return set(request.toolbox.names) - self._trained_tools

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the most probable first; see ``PlanSource``.

        A plan's confidence is the reader's probability of its sub-queries.
        """
        question = self._reader.read(request.question, request.context)
        hypotheses = self._hypotheses(question, request)
        if tools := self.untrained_tools(request):
            surprise = -max((hypothesis.score for hypothesis in hypotheses), default=0.0)
            yield from self._plans_with_untrained_tools(request, tools, SURPRISE_WEIGHT * surprise)
        probabilities = [math.exp(hypothesis.score) for hypothesis in hypotheses]
        for index, hypothesis in enumerate(hypotheses):
            texts = [
                [request.question if span is None else question.input.text(span) for span in spans]
                for _, spans in hypothesis.inputs
            ]
            plan = joined_plan(list(zip(hypothesis.sub_queries, texts, strict=True)))
            because = explain_confidence("the reader", probabilities[index:])
            asks_back = probabilities[index] < ASKS_BELOW
            yield ScoredPlan(without_no_evidence(plan), probabilities[index], asks_back, because)

    def _plans_with_untrained_tools(
        self, request: PlanRequest, tools: Set[str], tolerance: float
    ) -> Iterator[ScoredPlan]:
        """Yield the most probable plan that calls one of these tools.

        Yield no plan if this one is over ``tolerance`` nats less probable than the source's best.
        """
        best: ScoredPlan | None = None
        # The source raises an error if it cannot read all tools. Then only the reader plans.
        with suppress(InputError):
            for scored in valid_plans(self._untrained, request):
                best = best or scored
                if tools.isdisjoint(scored.plan.tools):
                    continue
                if scored is best or _deficit(best, scored) <= tolerance:
                    yield scored
                return

    def _hypotheses(self, question: EncodedQuestion, request: PlanRequest) -> list[_Hypothesis]:
        """Return the results of the beam search, the most probable first."""
        templates = self._reader.templates
        names = set(request.toolbox.names)
        present = {field for field, value in request.context.items() if value is not None}
        usable = np.array([tools <= names and fields <= present for tools, fields in self._needs])
        reach, step_counts, max_steps = self._reach, self._step_counts, request.max_steps
        active, finished = [_Hypothesis(0.0)], list[_Hypothesis]()
        for position in range(MAX_SUB_QUERIES):
            predicted = question.next_sub_queries([hypothesis.inputs for hypothesis in active])
            candidates: list[_Candidate] = []
            for row, hypothesis in enumerate(active):
                logits = predicted.scores[row].copy()
                step_count = hypothesis.step_count
                allowed = usable & (reach <= step_count) & (step_count + step_counts <= max_steps)
                tools = [tool for s in hypothesis.sub_queries for tool in s.tools]
                for index in np.flatnonzero(allowed & (reach > 0)):
                    allowed[index] = all(
                        field in request.toolbox[tools[-distance]].results
                        for distance, field in self._earlier_fields[index]
                    )
                logits[1:][~allowed] = -np.inf
                if position == 0:
                    # A message has at least one sub-query.
                    logits[0] = -np.inf
                if not np.isfinite(logits).any():
                    continue
                scores = logits - np.logaddexp.reduce(logits)
                if position:
                    finished.append(hypothesis.extended(float(scores[0])))
                # One template number more than needed: the end (number 0) may be among them.
                for number in np.argsort(-scores, kind="stable")[: BEAM_WIDTH + 1]:
                    if number and np.isfinite(scores[number]):
                        longer = hypothesis.extended(float(scores[number]), templates[number - 1])
                        candidates.append((longer, int(number), predicted.decoded[row]))
            candidates.sort(key=lambda candidate: -candidate[0].score)
            best = max((hypothesis.score for hypothesis in finished), default=-np.inf)
            # Scores only fall, so a worse hypothesis cannot overtake the best finished one.
            candidates = [c for c in candidates[:BEAM_WIDTH] if c[0].score > best]
            active = [h for h in _add_literals(question, candidates) if not h.ends_with_repetition]
            if not active:
                break
        # The active hypotheses have the maximum number of sub-queries, so they need no end.
        return sorted(finished + active, key=lambda hypothesis: -hypothesis.score)


def _deficit(best: ScoredPlan, scored: ScoredPlan) -> float:
    """Return the nats by which a plan is less probable than the best; infinite without scores."""
    if best.score is None or scored.score is None:
        return math.inf
    return best.score - scored.score


def _add_literals(question: EncodedQuestion, candidates: Sequence[_Candidate]) -> list[_Hypothesis]:
    """Return the candidates' hypotheses, with the literals of their last sub-queries."""
    slots = [
        (row, state, number, slot)
        for row, (hypothesis, number, state) in enumerate(candidates)
        for slot in range(len(hypothesis.sub_queries[-1].slots))
    ]
    found_spans = question.literals(
        [state for _, state, _, _ in slots],
        [number for _, _, number, _ in slots],
        [slot for _, _, _, slot in slots],
    )
    spans_of_rows: list[list[Span | None]] = [[] for _ in candidates]
    for (row, *_), span in zip(slots, found_spans, strict=True):
        spans_of_rows[row].append(span)
    return [
        replace(hypothesis, inputs=(*hypothesis.inputs, (number, tuple(spans))))
        for (hypothesis, number, _), spans in zip(candidates, spans_of_rows, strict=True)
    ]


def _earlier_fields(sub_query: SubQuery) -> list[tuple[int, str]]:
    """Return references to steps before a sub-query: distance from its first step, and field."""
    references = ((i, r) for i, step in enumerate(sub_query.steps) for r in step.references())
    return [(r.step - index, r.field) for index, r in references if r.step > index]
