"""Plans made by joining asks of plan cases, as a trained reader reads the question.

The reader says, ask by ask, to which form's cases the message is near and which words are its
literals; a beam search keeps the likeliest readings. A form that no training saw, such as that of
a tool which this request brings along, is represented by its example: it is near where the
example's latent is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.planner.asks import Ask, joined, needed
from casewright.planner.example_asks import ExampleAsk, example_asks
from casewright.planner.plan import Plan
from casewright.planner.reader import Reader, Reading, Span
from casewright.planner.reader_limits import MAX_ASKS
from casewright.planner.request import PlanRequest

#: Readings that are kept at each ask, and forms that are tried after each.
BEAM = 4


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The asks so far: how likely, their forms' numbers with literals, and their steps."""

    score: float
    fed: tuple[tuple[int, tuple[Span | None, ...]], ...] = ()
    asks: tuple[Ask, ...] = ()

    @property
    def length(self) -> int:
        return sum(len(ask.steps) for ask in self.asks)

    @property
    def repeats(self) -> bool:
        """Whether its last ask was asked before, by the same words: it would find the same."""
        *before, last = zip(self.asks, (spans for _, spans in self.fed), strict=True)
        return last in before and last[0].reach == 0


class AskReuse:
    """Joins asks to plans.

    Args:
        reader: A trained reader.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known = {tool for ask in reader.asks for tool in ask.tools}

    def plans(self, request: PlanRequest) -> Iterator[Plan]:
        """Yield plans for a request, the likeliest first; they may break static checks."""
        return (plan for plan, _ in self.readings(request))

    def readings(self, request: PlanRequest) -> Iterator[tuple[Plan, float]]:
        """Yield the same with the reader's probability of their asks, 0 to 1."""
        extra = example_asks(self._reader, request, self._known)
        reading = self._reader.read(request.question, request.context)
        for ended in self._search(reading, request, extra):
            texts = [
                [request.question if s is None else reading.input.text(s) for s in spans]
                for _, spans in ended.fed
            ]
            plan = needed(joined(list(zip(ended.asks, texts, strict=True))))
            yield plan, math.exp(ended.score)

    def _search(
        self, reading: Reading, request: PlanRequest, extra: Sequence[ExampleAsk]
    ) -> list[_Beginning]:
        asks = [*self._reader.asks, *(example.ask for example in extra)]
        admitted = np.array([_fits(ask, request) for ask in asks], dtype=bool)
        reach = np.array([ask.reach for ask in asks])
        length = np.array([len(ask.steps) for ask in asks])
        live, ended = [_Beginning(0.0)], list[_Beginning]()
        for place in range(MAX_ASKS):
            following = reading.next_asks([beginning.fed for beginning in live])
            chosen: list[tuple[_Beginning, int, NDArray[np.float32]]] = []
            for row, beginning in enumerate(live):
                logits = self._logits(following.scores[row], following.latents[row], extra)
                made = beginning.length
                allowed = admitted & (reach <= made) & (made + length <= request.max_steps)
                for number in np.flatnonzero(allowed & (reach > 0)):
                    allowed[number] = _refers(asks[number], beginning, request)
                logits[1:][~allowed] = -np.inf
                if place == 0:
                    logits[0] = -np.inf
                if not np.isfinite(logits).any():
                    continue
                likely = logits - np.logaddexp.reduce(logits)
                if place:
                    ended.append(_extended(beginning, float(likely[0])))
                for number in np.argsort(-likely, kind="stable")[: BEAM + 1]:
                    if number and np.isfinite(likely[number]):
                        longer = _extended(beginning, float(likely[number]), asks[number - 1])
                        chosen.append((longer, int(number), following.decoded[row]))
            chosen.sort(key=lambda one: -one[0].score)
            best = max((one.score for one in ended), default=-np.inf)
            # Scores only fall: what is behind an ended reading cannot overtake it.
            chosen = [one for one in chosen[:BEAM] if one[0].score > best]
            live = [one for one in self._with_literals(reading, chosen) if not one.repeats]
            if not live:
                break
        ended += live
        return sorted(ended, key=lambda one: -one.score)

    def _logits(
        self,
        scores: NDArray[np.float32],
        latent: NDArray[np.float32],
        extra: Sequence[ExampleAsk],
    ) -> NDArray[np.float32]:
        """Return logits of the end, of every trained form, and of every example."""
        return np.concatenate([scores, [example.logit(scores, latent) for example in extra]])

    def _with_literals(
        self, reading: Reading, chosen: Sequence[tuple[_Beginning, int, NDArray[np.float32]]]
    ) -> list[_Beginning]:
        """Find the literals of the last ask of every beginning, in one run."""
        wanted = [
            (row, min(number, self._reader.unknown), slot)
            for row, (beginning, number, _) in enumerate(chosen)
            for slot in range(len(beginning.asks[-1].slots))
        ]
        spans = reading.literals(
            [chosen[row][2] for row, _, _ in wanted],
            [form for _, form, _ in wanted],
            [slot for _, _, slot in wanted],
        )
        found: list[list[Span | None]] = [[] for _ in chosen]
        for (row, _, _), span in zip(wanted, spans, strict=True):
            found[row].append(span)
        return [
            _Beginning(
                beginning.score,
                (*beginning.fed, (min(number, self._reader.unknown), tuple(own))),
                beginning.asks,
            )
            for (beginning, number, _), own in zip(chosen, found, strict=True)
        ]


def _extended(beginning: _Beginning, score: float, ask: Ask | None = None) -> _Beginning:
    asks = beginning.asks if ask is None else (*beginning.asks, ask)
    return _Beginning(beginning.score + score, beginning.fed, asks)


def _fits(ask: Ask, request: PlanRequest) -> bool:
    """Say whether the request has the tools and the context that an ask needs."""
    return all(tool in request.toolbox for tool in ask.tools) and all(
        request.context.get(field) is not None for field in ask.context_fields()
    )


def _refers(ask: Ask, beginning: _Beginning, request: PlanRequest) -> bool:
    """Say whether what an ask refers to before itself has that field."""
    tools = [tool for before in beginning.asks for tool in before.tools]
    for index, step in enumerate(ask.steps):
        for reference in step.references():
            back = reference.step - index
            if back > 0 and reference.field not in request.toolbox[tools[-back]].results:
                return False
    return True
