"""Plans that join sub-queries of plan cases, by beam search with a trained reader.

The reader scores, sub-query by sub-query, the template and the words that are its literals; the
beam keeps the most probable beginnings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from casewright.planner.sub_queries import SubQuery, joined, without_no_evidence
from casewright.tools import NO_EVIDENCE

#: Width of the beam, and number of templates that are tried after each beginning.
BEAM = 4
#: Below this confidence the planner asks back. For the first questions of the shop's 48 tuning
#: conversations, that concerns 4 plans, of which 3 are wrong.
ASKS_BELOW = 0.6


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Hypothesis of the beam: log-probability, template numbers with literals, sub-queries."""

    score: float
    fed: tuple[tuple[int, tuple[Span | None, ...]], ...] = ()
    sub_queries: tuple[SubQuery, ...] = ()

    @property
    def length(self) -> int:
        return sum(len(sub_query.steps) for sub_query in self.sub_queries)

    @property
    def repeats(self) -> bool:
        """True if the last sub-query, with the same words, also occurs earlier."""
        *before, last = zip(self.sub_queries, (spans for _, spans in self.fed), strict=True)
        return last in before and last[0].reach == 0

    def extended(self, score: float, *more: SubQuery) -> _Beginning:
        return _Beginning(self.score + score, self.fed, (*self.sub_queries, *more))


#: A beginning whose last sub-query lacks its literals, that template, and the network's state.
_Candidate = tuple[_Beginning, int, NDArray[np.float32]]


class SubQueryReuse:
    """Joins sub-queries to plans.

    A reader chooses among its templates, which call only tools of its training: if the plan of
    another planner calls another tool, that plan comes first.

    Args:
        untrained: Plans with tools that the reader was not trained for; by default the plan parser.
    """

    def __init__(self, reader: Reader, untrained: PlanSource | None = None) -> None:
        self._reader = reader
        self._given = untrained
        self._trained = {NO_EVIDENCE.name, *(tool for t in reader.templates for tool in t.tools)}
        plans = [Plan(template.steps) for template in reader.templates]
        self._needs = [(frozenset(plan.tools), frozenset(context_fields(plan))) for plan in plans]
        self._reach = np.array([template.reach for template in reader.templates])
        self._length = np.array([len(template.steps) for template in reader.templates])

    @cached_property
    def _untrained(self) -> PlanSource:
        # Without examples: those of known tools would bias the parser against new tools.
        return self._given or ParserReuse(None)

    def untrained_tools(self, request: PlanRequest) -> set[str]:
        """Return the names of the tools that the reader was not trained for."""
        return set(request.toolbox.names) - self._trained

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the likeliest first; see ``PlanSource``.

        The confidence is the reader's probability of the sub-queries.
        """
        if untrained := self.untrained_tools(request):
            scored = None
            # If the parser cannot read so many tools, the plan uses only the reader's tools.
            with suppress(InputError):
                scored = next(valid_plans(self._untrained, request), None)
            if scored is not None and untrained.intersection(scored.plan.tools):
                yield scored
        question = self._reader.read(request.question, request.context)
        endings = self._search(question, request)
        for n, ending in enumerate(endings):
            texts = [
                [request.question if s is None else question.input.text(s) for s in spans]
                for _, spans in ending.fed
            ]
            plan = joined(list(zip(ending.sub_queries, texts, strict=True)))
            confidence = math.exp(ending.score)
            because = explain_confidence("the reader", [math.exp(e.score) for e in endings[n:]])
            yield ScoredPlan(
                without_no_evidence(plan), confidence, confidence < ASKS_BELOW, because
            )

    def _search(self, question: EncodedQuestion, request: PlanRequest) -> list[_Beginning]:
        templates = self._reader.templates
        names = set(request.toolbox.names)
        known = {field for field, value in request.context.items() if value is not None}
        usable = np.array([tools <= names and fields <= known for tools, fields in self._needs])
        reach, length = self._reach, self._length
        live, endings = [_Beginning(0.0)], list[_Beginning]()
        for position in range(MAX_SUB_QUERIES):
            following = question.next_sub_queries([beginning.fed for beginning in live])
            candidates: list[_Candidate] = []
            for row, beginning in enumerate(live):
                logits = following.scores[row].copy()
                steps = beginning.length
                allowed = usable & (reach <= steps) & (steps + length <= request.max_steps)
                for number in np.flatnonzero(allowed & (reach > 0)):
                    allowed[number] = _refers(templates[number], beginning, request)
                logits[1:][~allowed] = -np.inf
                if position == 0:
                    logits[0] = -np.inf
                if not np.isfinite(logits).any():
                    continue
                likely = logits - np.logaddexp.reduce(logits)
                if position:
                    endings.append(beginning.extended(float(likely[0])))
                for number in np.argsort(-likely, kind="stable")[: BEAM + 1]:
                    if number and np.isfinite(likely[number]):
                        longer = beginning.extended(float(likely[number]), templates[number - 1])
                        candidates.append((longer, int(number), following.decoded[row]))
            candidates.sort(key=lambda candidate: -candidate[0].score)
            best = max((ending.score for ending in endings), default=-np.inf)
            # Scores only fall, so a continuation cannot overtake a finished hypothesis.
            candidates = [candidate for candidate in candidates[:BEAM] if candidate[0].score > best]
            live = [b for b in _with_literals(question, candidates) if not b.repeats]
            if not live:
                break
        return sorted(endings + live, key=lambda ending: -ending.score)


def _with_literals(question: EncodedQuestion, candidates: Sequence[_Candidate]) -> list[_Beginning]:
    """Return the beginnings with the literals of their last sub-queries, in one batch."""
    slots = [
        (row, slot)
        for row, (beginning, _, _) in enumerate(candidates)
        for slot in range(len(beginning.sub_queries[-1].slots))
    ]
    spans = question.literals(
        [candidates[row][2] for row, _ in slots],
        [candidates[row][1] for row, _ in slots],
        [slot for _, slot in slots],
    )
    literals: list[list[Span | None]] = [[] for _ in candidates]
    for (row, _), span in zip(slots, spans, strict=True):
        literals[row].append(span)
    return [
        _Beginning(b.score, (*b.fed, (number, tuple(texts))), b.sub_queries)
        for (b, number, _), texts in zip(candidates, literals, strict=True)
    ]


def _refers(sub_query: SubQuery, beginning: _Beginning, request: PlanRequest) -> bool:
    """Return True if the steps before a sub-query have the fields that it refers to."""
    tools = [tool for before in beginning.sub_queries for tool in before.tools]
    for index, step in enumerate(sub_query.steps):
        for reference in step.references():
            back = reference.step - index
            if back > 0 and reference.field not in request.toolbox[tools[-back]].results:
                return False
    return True
