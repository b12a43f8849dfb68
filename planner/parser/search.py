"""Beam search for the likeliest plans, under the masks by which every plan is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.layers import HIDDEN, Floats, log_softmax
from casewright.planner.parser.message import Message
from casewright.planner.parser.options import Options, number_for
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    LONGEST,
    NUMBER,
    PLACES,
    PLAIN,
    SPAN,
    STEP,
    Argument,
    ReadStep,
)
from casewright.planner.parser.schema import Schema

#: Readings that are kept, tools that are tried after each, and values that are tried for each
#: argument.
BEAM, TOOLS, VALUES = 3, 3, 2
#: Runs of words that are looked at where two arguments would take the same.
RUNS = 6
#: Nothing is looked up where that is so likely; chosen on the toolboxes for validation, since
#: training episodes have more messages without an answer than people send.
NOTHING = 0.8
#: What masks refuse is far below this, as a logarithm.
IMPOSSIBLE = -50.0


class Points(Protocol):
    """A network that has read a message; ``pointing.Pointers`` says what is of which shape."""

    @property
    def start(self) -> Floats:
        """Input of the first step."""

    def next(self, fed: Floats, before: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Return states, and logits of tools and the end, after some beginnings."""

    def arguments(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        """Return the states of steps' arguments."""

    def options(self, states: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        """Return logits of what arguments may be."""

    def runs(self, states: Floats) -> Floats:
        """Return logits of runs of words."""

    def results(self, states: Floats) -> Floats:
        """Return logits of results of a step."""

    def numbers(self, states: Floats) -> Floats:
        """Return logits of the message's numbers."""

    def said(self, step: ReadStep, number: int) -> Floats:
        """Return what a step says to the next."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A complete plan, and the logarithm of its probability."""

    steps: tuple[ReadStep, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Beginning:
    steps: tuple[ReadStep, ...]
    score: float
    fed: tuple[Floats, ...]
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A tool after a beginning, before it has arguments."""

    row: int
    tool: int
    score: float
    parameters: list[int]


class PlanSearch:
    """Search for the likeliest plans for a message.

    Args:
        points: The network, which has read the message with its toolbox.
        options: Of the toolbox.
        message: The message.
        context: Its context.
    """

    def __init__(
        self, points: Points, options: Options, message: Message, context: Mapping[str, Any]
    ) -> None:
        self._points, self._options = points, options
        self._schema, self._message = options.schema, message
        self._plain = options.plain_of(message)
        self._context = options.context_of(message, context, max(1, len(message.fields)))
        own = np.concatenate([self._plain, options.choices, self._context], 1).any(1)
        #: Whether a tool may be called, by whether there are results to refer to.
        self._callable = [
            options.callable_with(own | (options.steps & results)) for results in (False, True)
        ]

    def plans(self, most_steps: int) -> list[Reading]:
        """Return complete plans, the likeliest first."""
        alive = [_Beginning((), 0.0, (self._points.start,), (len(self._schema.tools),))]
        plans: list[Reading] = []
        for number in range(min(most_steps, PLACES - 1) + 1):
            states, tools = self._tools(alive, ends=number >= most_steps)
            drafts = []
            for row, beginning in enumerate(alive):
                if beginning.steps:
                    plans.append(Reading(beginning.steps, beginning.score + float(tools[row, -1])))
                drafts += [
                    _Draft(row, tool, beginning.score + score, self._schema.parameters_of(tool))
                    for tool, score in _likeliest(tools[row, :-1], TOOLS)
                ]
            plans.sort(key=lambda plan: -plan.score)
            drafts = sorted(drafts, key=lambda draft: -draft.score)[: 2 * BEAM]
            if len(plans) >= BEAM:
                drafts = [draft for draft in drafts if draft.score > plans[BEAM - 1].score]
            if not drafts:
                break
            alive = self._continued(alive, states, drafts, number)
            if not alive:
                break
        return plans

    def _tools(self, alive: Sequence[_Beginning], *, ends: bool) -> tuple[Floats, Floats]:
        """Return the last state of each beginning and what may come next, as logarithms."""
        fed = np.stack([np.stack(beginning.fed) for beginning in alive])
        states, logits = self._points.next(fed, [beginning.before for beginning in alive])
        there = np.stack([self._usable(beginning, ends) for beginning in alive])
        tools = log_softmax(np.where(there, logits, HIDDEN))
        nothing = self._options.nothing
        if not alive[0].steps and (given_up := np.exp(tools[0, nothing])) < NOTHING:
            # A plan of many steps is less likely than one of none only since it has more to tell.
            tools[0] -= np.log1p(-given_up)
            tools[0, nothing] = 2 * IMPOSSIBLE
        return states, tools

    def _usable(self, beginning: _Beginning, ends: bool) -> NDArray[np.bool_]:
        """Return of each tool, and of the end, whether it may come next (tools + 1,)."""
        called = {step.tool for step in beginning.steps}
        results = not called.isdisjoint(self._options.owner.tolist())
        usable = np.append(self._callable[results], bool(called))
        if called:
            usable[self._options.nothing] = False
        if ends or self._options.nothing in called:
            usable[:-1] = False
        return usable

    def _continued(
        self, alive: Sequence[_Beginning], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[_Beginning]:
        """Return the likeliest beginnings that are one step longer."""
        longer: list[tuple[float, int, ReadStep]] = []
        for draft, values in zip(drafts, self._filled(alive, states, drafts, number), strict=True):
            for arguments, score in _joined(values):
                step = ReadStep(draft.tool, arguments)
                if step not in alive[draft.row].steps:
                    longer.append((draft.score + score, draft.row, step))
        return [
            _Beginning(
                (*alive[row].steps, step),
                score,
                (*alive[row].fed, self._points.said(step, number)),
                (*alive[row].before, step.tool),
            )
            for score, row, step in sorted(longer, key=lambda item: -item[0])[:BEAM]
        ]

    def _filled(
        self, alive: Sequence[_Beginning], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[list[list[tuple[Argument, float]]]]:
        """Return for each draft's parameters the likeliest arguments, with their logarithms."""
        filled: list[list[list[tuple[Argument, float]]]] = [[] for _ in drafts]
        most = max(len(draft.parameters) for draft in drafts)
        owners = [n for n, draft in enumerate(drafts) for _ in draft.parameters]
        if not most:
            return filled
        padded = [[*d.parameters, *[-1] * (most - len(d.parameters))] for d in drafts]
        parameters = np.array(padded, dtype=np.int64)
        own = self._points.arguments(
            states[[draft.row for draft in drafts]], [draft.tool for draft in drafts], parameters
        )
        which = parameters[parameters >= 0]
        allowed = [
            self._allowed(parameter, [step.tool for step in alive[drafts[n].row].steps])
            for n, parameter in zip(owners, which.tolist(), strict=True)
        ]
        logits = self._points.options(own, which, number)
        values = _Values(self._points, self._schema, self._message, own, which.tolist())
        options = [
            _likeliest(scores, VALUES) for scores in log_softmax(np.where(allowed, logits, HIDDEN))
        ]
        arguments: list[list[tuple[Argument, float]]] = [[] for _ in owners]
        # The surest argument chooses its words first.
        taken: list[set[int]] = [set() for _ in drafts]
        for row in sorted(range(len(owners)), key=lambda row: -options[row][0][1]):
            words = taken[owners[row]]
            arguments[row] = [
                values.of(row, option, words, score) for option, score in options[row]
            ]
            best = arguments[row][0][0]
            if best.kind == SPAN:
                words.update(range(best.spans[0][0], best.spans[0][1] + 1))
        for owner, likeliest in zip(owners, arguments, strict=True):
            filled[owner].append(likeliest)
        return filled

    def _allowed(self, parameter: int, before: Sequence[int]) -> NDArray[np.bool_]:
        return np.concatenate(
            [
                self._plain[parameter],
                self._options.choices[parameter],
                self._context[parameter],
                self._options.results_of(parameter, before, PLACES).ravel(),
            ]
        )


class _Values:
    """Arguments from options: the best words, number or result of each."""

    def __init__(
        self,
        points: Points,
        schema: Schema,
        message: Message,
        states: Floats,
        parameters: Sequence[int],
    ) -> None:
        self._schema, self._message, self._parameters = schema, message, parameters
        self._runs = log_softmax(points.runs(states).reshape(len(states), -1))
        self._results = log_softmax(points.results(states))
        fits = [
            [number_for(schema.parameters[p][1], number) is not None for number in message.numbers]
            or [False]
            for p in parameters
        ]
        self._numbers = log_softmax(np.where(fits, points.numbers(states), HIDDEN))

    def of(self, row: int, option: int, taken: set[int], score: float) -> tuple[Argument, float]:
        """Return an option as an argument, with the logarithm of its probability.

        Args:
            row: Of the argument.
            option: Its number among plain kinds, choices, context fields and results.
            taken: Words that other arguments of its step have.
            score: Of the option.
        """
        parameter = self._parameters[row]
        if option == SPAN:
            span, more = self._run(row, taken)
            return Argument(parameter, SPAN, spans=(span,)), score + more
        if option == NUMBER:
            [(number, more)] = _likeliest(self._numbers[row], 1)
            return Argument(parameter, NUMBER, numbers=(number,)), score + more
        if option < PLAIN:
            return Argument(parameter, option), score
        option -= PLAIN
        if option < len(self._schema.choices):
            return Argument(parameter, CHOICE, node=option), score
        option -= len(self._schema.choices)
        fields = max(1, len(self._message.fields))
        if option < fields:
            return Argument(parameter, CONTEXT, node=option), score
        step, node = divmod(option - fields, len(self._schema.results))
        [(index, more)] = _likeliest(self._results[row], 1)
        return Argument(parameter, STEP, node=node, step=step, index=index), score + more

    def _run(self, row: int, taken: set[int]) -> tuple[tuple[int, int], float]:
        runs = []
        for cell, score in _likeliest(self._runs[row], RUNS):
            first, more = divmod(cell, LONGEST)
            runs.append(((first, first + more), score))
        free = [run for run in runs if taken.isdisjoint(range(run[0][0], run[0][1] + 1))]
        return (free or runs)[0]


def _likeliest(scores: Floats, count: int) -> list[tuple[int, float]]:
    """Return the numbers of the highest of some logarithms with these, without the impossible."""
    best = np.argsort(-scores, kind="stable")[:count]
    return [(int(n), float(scores[n])) for n in best if scores[n] > IMPOSSIBLE]


def _joined(
    filled: Sequence[Sequence[tuple[Argument, float]]],
) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield the likeliest arguments together, and with one of them replaced by its second."""
    best = [own[0] for own in filled]
    total = sum(score for _, score in best)
    yield tuple(argument for argument, _ in best), total
    for number, own in enumerate(filled):
        for other, score in own[1:]:
            changed = [argument for argument, _ in best]
            changed[number] = other
            yield tuple(changed), total - best[number][1] + score
