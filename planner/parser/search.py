"""Beam search for the most probable plans, with masks that admit only valid plans."""

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

#: Width of the beam; maximum numbers of next tools per hypothesis, and of options per argument.
BEAM, MAX_TOOLS, MAX_VALUES = 3, 3, 2
#: Number of runs of words that are tried if two arguments of a step would share a word, and the
#: penalty in nats for sharing one: no step of the training toolboxes does.
MAX_RUNS, OVERLAP_COST = 8, 30.0
#: Penalty in nats for a reference to a field that has another name than the parameter, although a
#: field has the parameter's name: minus the logarithm of the share of such references in the plans
#: of the training toolboxes.
OTHER_FIELD_COST = 5.8
#: Minimum probability of ``no_evidence`` for a plan with it; chosen on the validation toolboxes,
#: since training has more messages without an answer than people send.
MIN_NO_EVIDENCE = 0.8
#: One option of a parameter, as arguments with their log-probabilities.
_Scored = list[tuple[Argument, float]]
#: Log-probability below which an option counts as masked.
IMPOSSIBLE = -50.0


@dataclass(frozen=True, slots=True)
class ScoredSteps:
    """A complete plan and its log-probability."""

    steps: tuple[ReadStep, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """The first steps of a plan: with the start, the decoder's inputs and the tools so far."""

    steps: tuple[ReadStep, ...]
    score: float
    inputs: tuple[Floats, ...]
    tools: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A next tool, still without arguments, for the hypothesis with number ``row``."""

    row: int
    tool: int
    score: float
    parameters: list[int]


class PlanSearch:
    """Search for the most probable plans for a message."""

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
        unlike = OTHER_FIELD_COST * options.unlike_of(message)
        fields = context_mask.shape[1]
        plain = np.zeros((len(unlike), self._allowed.shape[1] - fields))
        #: Penalties of each parameter's options (parameters, options).
        self._costs = np.concatenate(
            [plain, unlike[:, :fields], np.tile(unlike[:, fields:], (1, PLACES))], 1
        )
        has_value = self._allowed.any(1)
        #: True for tools that may be called, if no earlier step has results and if one has.
        self._callable = [
            options.callable_with(has_value | (options.steps & results))
            for results in (False, True)
        ]

    def plans(self, most_steps: int) -> list[ScoredSteps]:
        """Return complete plans, the most probable first."""
        active = [_Hypothesis((), 0.0, (self._pointers.start,), (len(self._schema.tools),))]
        plans: list[ScoredSteps] = []
        for number in range(min(most_steps, PLACES - 1) + 1):
            states, tools = self._tools(active, ends=number >= most_steps)
            top_tools = _top(tools[:, :-1], MAX_TOOLS)
            drafts = []
            for row, hypothesis in enumerate(active):
                if hypothesis.steps:
                    plans.append(
                        ScoredSteps(hypothesis.steps, hypothesis.score + float(tools[row, -1]))
                    )
                drafts += [
                    _Draft(row, tool, hypothesis.score + score, self._schema.parameters_of(tool))
                    for tool, score in top_tools[row]
                ]
            plans.sort(key=lambda plan: -plan.score)
            drafts = sorted(drafts, key=lambda draft: -draft.score)[: 2 * BEAM]
            if len(plans) >= BEAM:
                drafts = [draft for draft in drafts if draft.score > plans[BEAM - 1].score]
            if not drafts:
                break
            active = self._continued(active, states, drafts, number)
            if not active:
                break
        return plans

    def _tools(self, active: Sequence[_Hypothesis], *, ends: bool) -> tuple[Floats, Floats]:
        """Return each hypothesis's state, and log-probabilities of each tool and the end."""
        inputs = np.stack([np.stack(hypothesis.inputs) for hypothesis in active])
        earlier = np.array([hypothesis.tools for hypothesis in active], dtype=np.int64)
        states, logits = self._pointers.next(inputs, earlier)
        usable = np.stack([self._usable(hypothesis, ends) for hypothesis in active])
        tools = log_softmax(np.where(usable, logits, HIDDEN))
        nothing = self._options.nothing
        if not active[0].steps and (probability := np.exp(tools[0, nothing])) < MIN_NO_EVIDENCE:
            # A plan of many steps is less likely than an empty one just because it is longer.
            tools[0] -= np.log1p(-probability)
            tools[0, nothing] = 2 * IMPOSSIBLE
        return states, tools

    def _usable(self, hypothesis: _Hypothesis, ends: bool) -> NDArray[np.bool_]:
        """Return True for each tool, and last for the end, that may come next (tools + 1,)."""
        called = {step.tool for step in hypothesis.steps}
        results = not called.isdisjoint(self._options.owner.tolist())
        usable = np.append(self._callable[results], bool(called))
        if called:
            usable[self._options.nothing] = False
        if ends or self._options.nothing in called:
            usable[:-1] = False
        if self._beyond is not unbounded:
            for tool in np.flatnonzero(usable[:-1]).tolist():
                usable[tool] = self._within([*hypothesis.steps, ReadStep(tool, ())])
        return usable

    def _within(self, steps: Sequence[ReadStep]) -> bool:
        """Return True if the first steps of a plan are within the budget."""
        if self._beyond is unbounded:
            return True
        return not self._beyond(write_plan(steps, self._schema, self._message))

    def _continued(
        self, active: Sequence[_Hypothesis], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[_Hypothesis]:
        """Return the most probable hypotheses that are one step longer."""
        filled = self._filled(active, states, drafts, number)
        candidates = [
            (draft.score + score, draft, arguments)
            for draft, values in zip(drafts, filled, strict=True)
            for arguments, score in _combinations(values)
        ]
        # The budget is checked again, since the critical path depends on the step's arguments.
        affordable = (
            (score, active[draft.row], step)
            for score, draft, arguments in sorted(candidates, key=lambda item: -item[0])
            if (step := ReadStep(draft.tool, arguments)) not in active[draft.row].steps
            and self._within([*active[draft.row].steps, step])
        )
        best = list(islice(affordable, BEAM))
        if not best:
            return []
        inputs = self._pointers.step_inputs([step for _, _, step in best], number)
        return [
            _Hypothesis((*old.steps, step), score, (*old.inputs, added), (*old.tools, step.tool))
            for (score, old, step), added in zip(best, inputs, strict=True)
        ]

    def _filled(
        self, active: Sequence[_Hypothesis], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[list[list[_Scored]]]:
        """Return the most probable options of each draft's parameters."""
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
        slots = parameters[parameters >= 0]
        by_row = [self._options.results_of(h.tools[1:], PLACES).ravel() for h in active]
        results = np.stack(by_row)[[drafts[n].row for n in owners]]
        results &= self._options.steps[slots, None]
        allowed = np.concatenate([self._allowed[slots], results], 1)
        logits = self._pointers.options(encoded, slots, number)
        values = _Values(
            self._pointers,
            self._schema,
            self._message,
            encoded,
            slots.tolist(),
            self._fitting[slots],
        )
        scored = log_softmax(np.where(allowed, logits, HIDDEN)) - self._costs[slots]
        for row, options in enumerate(_top(scored, MAX_VALUES)):
            filled[owners[row]].append([values.of(row, *option) for option in options])
        return filled


class _Values:
    """Converts options to arguments, with the best words, number or result of each."""

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
        self._runs = _top(log_softmax(runs), MAX_RUNS)
        self._results = _top(log_softmax(pointers.results(rows)), 1)
        numbers = np.where(fitting, pointers.numbers(rows), HIDDEN)
        self._numbers = _top(log_softmax(numbers), 1)

    def of(self, row: int, option: int, score: float) -> _Scored:
        """Return an option as arguments with log-probabilities; several if it is a span.

        Args:
            option: Its index in plain kinds, choices, context fields and results.
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


def _top(scores: Floats, count: int) -> list[list[tuple[int, float]]]:
    """Return index and value of each row's highest log-probabilities, without masked ones."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    values = np.take_along_axis(scores, best, 1)
    return [
        [(n, value) for n, value in zip(*row, strict=True) if value > IMPOSSIBLE]
        for row in zip(best.tolist(), values.tolist(), strict=True)
    ]


def _combinations(
    by_parameter: Sequence[Sequence[_Scored]],
) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield the best options of all parameters, then with one replaced by its second best."""
    best = [options[0] for options in by_parameter]
    yield _without_overlap(best)
    for number, options in enumerate(by_parameter):
        for other in options[1:]:
            yield _without_overlap([*best[:number], other, *best[number + 1 :]])


def _without_overlap(options: Sequence[_Scored]) -> tuple[tuple[Argument, ...], float]:
    """Return the most probable arguments, one of each option, that do not share a word."""
    first = [arguments[0] for arguments in options]
    spans = [argument.spans[0] for argument, _ in first if argument.kind == SPAN]
    if all(one[1] < other[0] or other[1] < one[0] for one, other in combinations(spans, 2)):
        return tuple(argument for argument, _ in first), sum(score for _, score in first)
    beam: list[tuple[float, tuple[Argument, ...], frozenset[int]]] = [(0.0, (), frozenset())]
    for arguments in options:
        candidates = []
        for argument, more in arguments:
            words = frozenset(n for first, last in argument.spans for n in range(first, last + 1))
            candidates += [
                (
                    score + more - OVERLAP_COST * bool(words & taken),
                    (*rest, argument),
                    words | taken,
                )
                for score, rest, taken in beam
            ]
        beam = sorted(candidates, key=lambda item: -item[0])[:MAX_RUNS]
    if beam[0][0] < -OVERLAP_COST:
        return beam[0][1], beam[0][0]
    # The probability of all combinations goes to those without a common word.
    scores = np.array([score for score, *_ in beam])
    mass = sum(np.logaddexp.reduce([score for _, score in arguments]) for arguments in options)
    return beam[0][1], float(scores[0] + min(0.0, mass) - np.logaddexp.reduce(scores))
