"""Plans made by joining sub-queries of plan cases, as a trained reader reads the question.

The reader says, sub-query by sub-query, to which template's cases the message is near and which
words are its literals; a beam search keeps the likeliest beginnings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.planner.asks import Ask, joined, needed
from casewright.planner.reader import Reader, Span
from casewright.planner.reader import Reading as ReadQuestion
from casewright.planner.reader_limits import MAX_ASKS
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reading

#: Beginnings that are kept at each sub-query, and templates that are tried after each.
BEAM = 4
#: Less sure than this of a plan, it asks back: measured on the first questions of the shop's
#: conversations that are for tuning, 4 of 48, of which 3 plans are wrong.
ASKS_BELOW = 0.6


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The sub-queries so far: how likely, their templates' numbers with literals, their steps."""

    score: float
    fed: tuple[tuple[int, tuple[Span | None, ...]], ...] = ()
    asks: tuple[Ask, ...] = ()

    @property
    def length(self) -> int:
        return sum(len(ask.steps) for ask in self.asks)

    @property
    def repeats(self) -> bool:
        """True where its last sub-query came before, in the same words."""
        *before, last = zip(self.asks, (spans for _, spans in self.fed), strict=True)
        return last in before and last[0].reach == 0


class AskReuse:
    """Joins sub-queries to plans.

    Args:
        reader: A trained reader.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first; see ``Reuse``.

        Their confidence is the reader's probability of their sub-queries.
        """
        question = self._reader.read(request.question, request.context)
        for ended in self._search(question, request):
            texts = [
                [request.question if s is None else question.input.text(s) for s in spans]
                for _, spans in ended.fed
            ]
            plan = needed(joined(list(zip(ended.asks, texts, strict=True))))
            confidence = math.exp(ended.score)
            yield Reading(plan, confidence, confidence < ASKS_BELOW)

    def _search(self, question: ReadQuestion, request: PlanRequest) -> list[_Beginning]:
        asks = self._reader.asks
        admitted = np.array([_fits(ask, request) for ask in asks], dtype=bool)
        reach = np.array([ask.reach for ask in asks])
        length = np.array([len(ask.steps) for ask in asks])
        live, ended = [_Beginning(0.0)], list[_Beginning]()
        for position in range(MAX_ASKS):
            following = question.next_asks([beginning.fed for beginning in live])
            chosen: list[tuple[_Beginning, int, NDArray[np.float32]]] = []
            for row, beginning in enumerate(live):
                logits = following.scores[row].copy()
                steps = beginning.length
                allowed = admitted & (reach <= steps) & (steps + length <= request.max_steps)
                for number in np.flatnonzero(allowed & (reach > 0)):
                    allowed[number] = _refers(asks[number], beginning, request)
                logits[1:][~allowed] = -np.inf
                if position == 0:
                    logits[0] = -np.inf
                if not np.isfinite(logits).any():
                    continue
                likely = logits - np.logaddexp.reduce(logits)
                if position:
                    ended.append(_extended(beginning, float(likely[0])))
                for number in np.argsort(-likely, kind="stable")[: BEAM + 1]:
                    if number and np.isfinite(likely[number]):
                        longer = _extended(beginning, float(likely[number]), asks[number - 1])
                        chosen.append((longer, int(number), following.decoded[row]))
            chosen.sort(key=lambda candidate: -candidate[0].score)
            best = max((candidate.score for candidate in ended), default=-np.inf)
            # Scores only fall: what is behind an ended reading cannot overtake it.
            chosen = [candidate for candidate in chosen[:BEAM] if candidate[0].score > best]
            live = [
                candidate
                for candidate in self._with_literals(question, chosen)
                if not candidate.repeats
            ]
            if not live:
                break
        ended += live
        return sorted(ended, key=lambda candidate: -candidate.score)

    def _with_literals(
        self, question: ReadQuestion, chosen: Sequence[tuple[_Beginning, int, NDArray[np.float32]]]
    ) -> list[_Beginning]:
        """Return the beginnings with the literals of their last sub-queries, in one run."""
        wanted = [
            (row, number, slot)
            for row, (beginning, number, _) in enumerate(chosen)
            for slot in range(len(beginning.asks[-1].slots))
        ]
        spans = question.literals(
            [chosen[row][2] for row, _, _ in wanted],
            [form for _, form, _ in wanted],
            [slot for _, _, slot in wanted],
        )
        literals: list[list[Span | None]] = [[] for _ in chosen]
        for (row, _, _), span in zip(wanted, spans, strict=True):
            literals[row].append(span)
        return [
            _Beginning(beginning.score, (*beginning.fed, (number, tuple(own))), beginning.asks)
            for (beginning, number, _), own in zip(chosen, literals, strict=True)
        ]


def _extended(beginning: _Beginning, score: float, ask: Ask | None = None) -> _Beginning:
    asks = beginning.asks if ask is None else (*beginning.asks, ask)
    return _Beginning(beginning.score + score, beginning.fed, asks)


def _fits(ask: Ask, request: PlanRequest) -> bool:
    """Return whether the request has the tools and the context that a sub-query needs."""
    return all(tool in request.toolbox for tool in ask.tools) and all(
        request.context.get(field) is not None for field in ask.context_fields()
    )


def _refers(ask: Ask, beginning: _Beginning, request: PlanRequest) -> bool:
    """Return whether the steps before a sub-query have the fields that it refers to."""
    tools = [tool for before in beginning.asks for tool in before.tools]
    for index, step in enumerate(ask.steps):
        for reference in step.references():
            back = reference.step - index
            if back > 0 and reference.field not in request.toolbox[tools[-back]].results:
                return False
    return True
