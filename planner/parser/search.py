"""Beam search for the likeliest plans, under the masks by which every plan is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.budget import BudgetCheck, unbounded
from casewright.planner.parser.layers import HIDDEN, Floats, log_softmax
from casewright.planner.parser.message import Message
from casewright.planner.parser.options import Options
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
    write_plan,
)
from casewright.planner.parser.schema import Schema

if TYPE_CHECKING:
    from casewright.planner.parser.pointing import Pointers

#: Width of the beam, and branches after each beginning: tools, and values of each argument.
BEAM, TOOLS, VALUES = 3, 3, 2
#: Runs of words that are tried where two arguments of a step would share a word, and what it
#: costs to share one: no step of the training toolboxes does.
RUNS, SHARED = 8, 30.0
#: Penalty, in nats, of a reference to a field without the parameter's name where another field has
#: that name: minus the logarithm of the share of such references in the training toolboxes' plans.
UNLIKE = 5.8
#: Least probability of a plan that looks nothing up; chosen on the toolboxes for validation, since
#: training episodes have more messages without an answer than people send.
NOTHING = 0.8
#: An option of a parameter: arguments with their log-probabilities.
_Scored = list[tuple[Argument, float]]
#: Masked options are far below this log-probability.
IMPOSSIBLE = -50.0


@dataclass(frozen=True, slots=True)
class ScoredSteps:
    """A complete plan and its log-probability."""

    steps: tuple[ReadStep, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first steps of a plan, with the decoder's inputs and the tools after the start."""

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
    """Search for the likeliest plans for a message."""

    def __init__(
        self,
        pointers: Pointers,
        options: Options,
        message: Message,
        context: Mapping[str, Any],
        beyond: BudgetCheck = unbounded,
    ) -> None:
        self._pointers, self._options = pointers, options
        self._schema, self._message = options.schema, message
        self._beyond = beyond
        context_mask = options.context_of(message, context, max(1, len(message.fields)))
        masks = [options.plain_of(message), options.choices, context_mask]
        #: Options of each parameter that need no earlier step (parameters, options).
        self._allowed = np.concatenate(masks, 1)
        self._fitting = options.numbers_of(message)
        unlike = UNLIKE * options.unlike_of(message)
        at = context_mask.shape[1]
        plain = np.zeros((len(unlike), self._allowed.shape[1] - at))
        #: The costs of each parameter's options (parameters, options).
        self._costs = np.concatenate(
            [plain, unlike[:, :at], np.tile(unlike[:, at:], (1, PLACES))], 1
        )
        able = self._allowed.any(1)
        #: True for tools that may be called, without and with earlier results.
        self._callable = [
            options.callable_with(able | (options.steps & results)) for results in (False, True)
        ]

    def plans(self, most_steps: int) -> list[ScoredSteps]:
        """Return complete plans, the likeliest first."""
        alive = [_Beginning((), 0.0, (self._pointers.start,), (len(self._schema.tools),))]
        plans: list[ScoredSteps] = []
        for number in range(min(most_steps, PLACES - 1) + 1):
            states, tools = self._tools(alive, ends=number >= most_steps)
            likeliest = _likeliest(tools[:, :-1], TOOLS)
            drafts = []
            for row, beginning in enumerate(alive):
                if beginning.steps:
                    plans.append(
                        ScoredSteps(beginning.steps, beginning.score + float(tools[row, -1]))
                    )
                drafts += [
                    _Draft(row, tool, beginning.score + score, self._schema.parameters_of(tool))
                    for tool, score in likeliest[row]
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
        """Return each beginning's state, and log-probabilities of each tool and the end."""
        fed = np.stack([np.stack(beginning.fed) for beginning in alive])
        before = np.array([beginning.before for beginning in alive], dtype=np.int64)
        states, logits = self._pointers.next(fed, before)
        usable = np.stack([self._usable(beginning, ends) for beginning in alive])
        tools = log_softmax(np.where(usable, logits, HIDDEN))
        nothing = self._options.nothing
        if not alive[0].steps and (probability := np.exp(tools[0, nothing])) < NOTHING:
            # A plan of many steps is less likely than an empty one just because it is longer.
            tools[0] -= np.log1p(-probability)
            tools[0, nothing] = 2 * IMPOSSIBLE
        return states, tools

    def _usable(self, beginning: _Beginning, ends: bool) -> NDArray[np.bool_]:
        """Return True for each tool, and last for the end, that may come next (tools + 1,)."""
        called = {step.tool for step in beginning.steps}
        results = not called.isdisjoint(self._options.owner.tolist())
        usable = np.append(self._callable[results], bool(called))
        if called:
            usable[self._options.nothing] = False
        if ends or self._options.nothing in called:
            usable[:-1] = False
        if self._beyond is not unbounded:
            for tool in np.flatnonzero(usable[:-1]).tolist():
                usable[tool] = self._within([*beginning.steps, ReadStep(tool, ())])
        return usable

    def _within(self, steps: Sequence[ReadStep]) -> bool:
        """Return whether the beginning of a plan is within the budget."""
        if self._beyond is unbounded:
            return True
        return not self._beyond(write_plan(steps, self._schema, self._message))

    def _continued(
        self, alive: Sequence[_Beginning], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[_Beginning]:
        """Return the likeliest beginnings that are one step longer."""
        filled = self._filled(alive, states, drafts, number)
        longer = [
            (draft.score + score, draft, arguments)
            for draft, values in zip(drafts, filled, strict=True)
            for arguments, score in _joined(values)
        ]
        # Only with its arguments does a step have a place on the critical path.
        within = (
            (score, alive[draft.row], step)
            for score, draft, arguments in sorted(longer, key=lambda item: -item[0])
            if (step := ReadStep(draft.tool, arguments)) not in alive[draft.row].steps
            and self._within([*alive[draft.row].steps, step])
        )
        best = list(islice(within, BEAM))
        if not best:
            return []
        inputs = self._pointers.step_inputs([step for _, _, step in best], number)
        return [
            _Beginning((*start.steps, step), score, (*start.fed, fed), (*start.before, step.tool))
            for (score, start, step), fed in zip(best, inputs, strict=True)
        ]

    def _filled(
        self, alive: Sequence[_Beginning], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[list[list[_Scored]]]:
        """Return the likeliest options of each draft's parameters."""
        filled: list[list[list[_Scored]]] = [[] for _ in drafts]
        most = max(len(draft.parameters) for draft in drafts)
        owners = [n for n, draft in enumerate(drafts) for _ in draft.parameters]
        if not most:
            return filled
        padded = [[*d.parameters, *[-1] * (most - len(d.parameters))] for d in drafts]
        parameters = np.array(padded, dtype=np.int64)
        encoded = self._pointers.arguments(
            states[[draft.row for draft in drafts]], [draft.tool for draft in drafts], parameters
        )
        which = parameters[parameters >= 0]
        before = [self._options.results_of(start.before[1:], PLACES).ravel() for start in alive]
        results = np.stack(before)[[drafts[n].row for n in owners]]
        results &= self._options.steps[which, None]
        allowed = np.concatenate([self._allowed[which], results], 1)
        logits = self._pointers.options(encoded, which, number)
        values = _Values(
            self._pointers,
            self._schema,
            self._message,
            encoded,
            which.tolist(),
            self._fitting[which],
        )
        scored = log_softmax(np.where(allowed, logits, HIDDEN)) - self._costs[which]
        for row, options in enumerate(_likeliest(scored, VALUES)):
            filled[owners[row]].append([values.of(row, *option) for option in options])
        return filled


class _Values:
    """Arguments from options: the best words, number or result of each."""

    def __init__(
        self,
        pointers: Pointers,
        schema: Schema,
        message: Message,
        rows: Floats,
        parameters: Sequence[int],
        fitting: NDArray[np.bool_],
    ) -> None:
        self._schema, self._message, self._parameters = schema, message, parameters
        runs = pointers.runs(rows).reshape(len(rows), -1)
        self._runs = _likeliest(log_softmax(runs), RUNS)
        self._results = _likeliest(log_softmax(pointers.results(rows)), 1)
        numbers = np.where(fitting, pointers.numbers(rows), HIDDEN)
        self._numbers = _likeliest(log_softmax(numbers), 1)

    def of(self, row: int, option: int, score: float) -> _Scored:
        """Return an option as arguments with log-probabilities: more than one if it takes words.

        Args:
            option: Its number among plain kinds, choices, context fields and results.
        """
        parameter = self._parameters[row]
        if option == SPAN:
            runs = []
            for cell, more in self._runs[row]:
                first, length = divmod(cell, LONGEST)
                span = first, first + length
                runs.append((Argument(parameter, SPAN, spans=(span,)), score + more))
            return runs
        if option == NUMBER:
            [(number, more)] = self._numbers[row]
            return [(Argument(parameter, NUMBER, numbers=(number,)), score + more)]
        if option < PLAIN:
            return [(Argument(parameter, option), score)]
        option -= PLAIN
        if option < len(self._schema.choices):
            return [(Argument(parameter, CHOICE, node=option), score)]
        option -= len(self._schema.choices)
        fields = max(1, len(self._message.fields))
        if option < fields:
            return [(Argument(parameter, CONTEXT, node=option), score)]
        step, node = divmod(option - fields, len(self._schema.results))
        [(index, more)] = self._results[row]
        return [(Argument(parameter, STEP, node=node, step=step, index=index), score + more)]


def _likeliest(scores: Floats, count: int) -> list[list[tuple[int, float]]]:
    """Return index and value of each row's highest log-probabilities, without the impossible."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    values = np.take_along_axis(scores, best, 1)
    return [
        [(n, value) for n, value in zip(*row, strict=True) if value > IMPOSSIBLE]
        for row in zip(best.tolist(), values.tolist(), strict=True)
    ]


def _joined(filled: Sequence[Sequence[_Scored]]) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield the likeliest options together, and with one of them replaced by its second."""
    best = [options[0] for options in filled]
    yield _apart(best)
    for number, options in enumerate(filled):
        for other in options[1:]:
            yield _apart([*best[:number], other, *best[number + 1 :]])


def _apart(options: Sequence[_Scored]) -> tuple[tuple[Argument, ...], float]:
    """Return an argument of each option, the likeliest of which no two share a word."""
    first = [arguments[0] for arguments in options]
    spans = [argument.spans[0] for argument, _ in first if argument.kind == SPAN]
    if all(one[1] < other[0] or other[1] < one[0] for one, other in combinations(spans, 2)):
        return tuple(argument for argument, _ in first), sum(score for _, score in first)
    beam: list[tuple[float, tuple[Argument, ...], frozenset[int]]] = [(0.0, (), frozenset())]
    for arguments in options:
        longer = []
        for argument, more in arguments:
            words = frozenset(n for first, last in argument.spans for n in range(first, last + 1))
            longer += [
                (score + more - (SHARED if words & taken else 0), (*rest, argument), words | taken)
                for score, rest, taken in beam
            ]
        beam = sorted(longer, key=lambda item: -item[0])[:RUNS]
    if beam[0][0] < -SHARED:
        return beam[0][1], beam[0][0]
    # The arguments' probability is shared among the combinations without a word in common.
    scores = np.array([score for score, *_ in beam])
    mass = sum(np.logaddexp.reduce([score for _, score in arguments]) for arguments in options)
    return beam[0][1], float(scores[0] + min(0.0, mass) - np.logaddexp.reduce(scores))
