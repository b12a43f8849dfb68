"""Beam search for the most probable plans, with masks that admit only valid plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

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
from casewright.planner.parser.pointing import Pointers

#: Width of the beam; maximum numbers of next tools per hypothesis, and of options per argument.
BEAM, MAX_TOOLS, MAX_VALUES = 3, 3, 2
#: Number of runs of words that are tried for each argument if two arguments of a step would share a
#: word, and the penalty in nats for sharing one: in no step of the training toolboxes do they.
MAX_RUNS, OVERLAP_COST = 8, 30.0
#: Penalty in nats for a reference to a field that has another name than the parameter, although a
#: field has the parameter's name: minus the logarithm of the share of such references in the plans
#: of the training toolboxes.
OTHER_FIELD_COST = 5.8
#: Minimum probability of ``no_evidence`` for a plan with it, since training has more messages
#: without an answer than people send. From 0.8 to 0.95 the validation toolboxes are planned about
#: equally well; the highest, since plain questions for two or three tools look like small talk.
MIN_NO_EVIDENCE = 0.95
#: Log-probability below which an option counts as masked.
IMPOSSIBLE = -50.0
#: One option of a parameter, as arguments with their log-probabilities.
_ScoredOption = list[tuple[Argument, float]]
#: Indices with their log-probabilities, the most probable first.
_Ranking = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class ScoredSteps:
    """A complete plan and its log-probability."""

    steps: tuple[ReadStep, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """The first steps of a plan.

    Attributes:
        inputs: The decoder's inputs for the start and for each step.
        tools: The number of the start, then the tools of the steps.
    """

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
    """Search for the most probable plans for a message, within the budget ``beyond``."""

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
        #: Number of nodes of context fields.
        self._field_count = max(1, len(message.fields))
        context_mask = options.context_of(message, context, self._field_count)
        masks = [options.plain_of(message), options.choices, context_mask]
        #: Options of each parameter that need no earlier step (parameters, options).
        self._allowed = np.concatenate(masks, 1)
        self._fitting = options.numbers_of(message)
        no_costs = np.zeros((len(masks[0]), masks[0].shape[1] + masks[1].shape[1]))
        of_fields, of_results = np.split(
            OTHER_FIELD_COST * options.unlike_of(message), [self._field_count], axis=1
        )
        #: Penalties of each parameter's options (parameters, options).
        self._costs = np.concatenate([no_costs, of_fields, np.tile(of_results, (1, PLACES))], 1)
        has_value = self._allowed.any(1)
        #: True for tools that may be called, if no earlier step has results and if one has.
        self._callable = [
            options.callable_with(has_value | (options.steps & results))
            for results in (False, True)
        ]

    def plans(self, most_steps: int) -> list[ScoredSteps]:
        """Return plans of at most ``most_steps`` and PLACES - 1 steps, the most probable first."""
        active = [_Hypothesis((), 0.0, (self._pointers.start,), (len(self._schema.tools),))]
        plans: list[ScoredSteps] = []
        for number in range(min(most_steps, PLACES - 1) + 1):
            states, tools = self._tools(active, must_end=number >= most_steps)
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
            if not drafts or not (active := self._continued(active, states, drafts, number)):
                break
        return plans

    def _tools(self, active: Sequence[_Hypothesis], *, must_end: bool) -> tuple[Floats, Floats]:
        """Return the hypotheses' states, and log-probabilities of each tool and, last, the end."""
        inputs = np.stack([np.stack(hypothesis.inputs) for hypothesis in active])
        earlier = np.array([hypothesis.tools for hypothesis in active], dtype=np.int64)
        states, logits = self._pointers.next(inputs, earlier)
        usable = np.stack([self._usable(hypothesis, must_end) for hypothesis in active])
        tools = log_softmax(np.where(usable, logits, HIDDEN))
        nothing = self._options.nothing
        if not active[0].steps and (probability := np.exp(tools[0, nothing])) < MIN_NO_EVIDENCE:
            # A longer plan has a lower probability even if ``no_evidence`` is not right. So the
            # probability of ``no_evidence`` goes to the other tools.
            tools[0] -= np.log1p(-probability)
            tools[0, nothing] = 2 * IMPOSSIBLE
        return states, tools

    def _usable(self, hypothesis: _Hypothesis, must_end: bool) -> NDArray[np.bool_]:
        """Return True for each tool, and last for the end, that may come next (tools + 1,)."""
        called = {step.tool for step in hypothesis.steps}
        results = not called.isdisjoint(self._options.result_tool.tolist())
        usable = np.append(self._callable[results], bool(called))
        if called:
            usable[self._options.nothing] = False
        if must_end or self._options.nothing in called:
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
        options_by_draft = self._options_of(active, states, drafts, number)
        candidates = [
            (draft.score + score, draft, arguments)
            for draft, options in zip(drafts, options_by_draft, strict=True)
            for arguments, score in _combinations(options)
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

    def _options_of(
        self, active: Sequence[_Hypothesis], states: Floats, drafts: Sequence[_Draft], number: int
    ) -> list[list[list[_ScoredOption]]]:
        """Return the most probable options of each draft's parameters."""
        options_by_draft: list[list[list[_ScoredOption]]] = [[] for _ in drafts]
        most = max(len(draft.parameters) for draft in drafts)
        draft_of = [n for n, draft in enumerate(drafts) for _ in draft.parameters]
        if not most:
            return options_by_draft
        padded = [[*d.parameters, *[-1] * (most - len(d.parameters))] for d in drafts]
        parameters = np.array(padded, dtype=np.int64)
        rows = self._pointers.arguments(
            states[[draft.row for draft in drafts]], [draft.tool for draft in drafts], parameters
        )
        slots = parameters[parameters >= 0]
        by_row = [self._options.results_of(h.tools[1:], PLACES).ravel() for h in active]
        results = np.stack(by_row)[[drafts[n].row for n in draft_of]]
        results &= self._options.steps[slots, None]
        allowed = np.concatenate([self._allowed[slots], results], 1)
        logits = self._pointers.options(rows, slots, number)
        scores = log_softmax(np.where(allowed, logits, HIDDEN)) - self._costs[slots]
        numbers = np.where(self._fitting[slots], self._pointers.numbers(rows), HIDDEN)
        rankings = zip(
            _top(log_softmax(self._pointers.runs(rows).reshape(len(rows), -1)), MAX_RUNS),
            _top(log_softmax(numbers), 1),
            _top(log_softmax(self._pointers.results(rows)), 1),
            strict=True,
        )
        best = zip(draft_of, slots.tolist(), _top(scores, MAX_VALUES), rankings, strict=True)
        for draft, parameter, options, ranking in best:
            arguments = [self._arguments(parameter, *option, *ranking) for option in options]
            options_by_draft[draft].append(arguments)
        return options_by_draft

    def _arguments(
        self,
        parameter: int,
        option: int,
        score: float,
        runs: _Ranking,
        numbers: _Ranking,
        results: _Ranking,
    ) -> _ScoredOption:
        """Return an option as arguments with log-probabilities; several if it is a span.

        Args:
            option: Its index in plain kinds, choices, context fields and results.
            score: Its log-probability.
            runs: The best runs of words, as flat indices into the array (words, LONGEST).
            numbers: The best number of the message.
            results: The best index of a result.
        """
        if option == SPAN:
            arguments = []
            for cell, more in runs:
                first, length = divmod(cell, LONGEST)
                span = first, first + length
                arguments.append((Argument(parameter, SPAN, spans=(span,)), score + more))
            return arguments
        if option == NUMBER:
            [(number, more)] = numbers
            return [(Argument(parameter, NUMBER, numbers=(number,)), score + more)]
        if option < PLAIN:
            return [(Argument(parameter, option), score)]
        option -= PLAIN
        if option < len(self._schema.choices):
            return [(Argument(parameter, CHOICE, node=option), score)]
        option -= len(self._schema.choices)
        if option < self._field_count:
            return [(Argument(parameter, CONTEXT, node=option), score)]
        step, node = divmod(option - self._field_count, len(self._schema.results))
        [(index, more)] = results
        return [(Argument(parameter, STEP, node=node, step=step, index=index), score + more)]


def _top(scores: Floats, count: int) -> list[_Ranking]:
    """Return for each row the indices and values of its ``count`` highest, without masked ones."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    values = np.take_along_axis(scores, best, 1)
    return [
        [(n, value) for n, value in zip(*row, strict=True) if value > IMPOSSIBLE]
        for row in zip(best.tolist(), values.tolist(), strict=True)
    ]


def _combinations(
    by_parameter: Sequence[Sequence[_ScoredOption]],
) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield the best options of all parameters, then with one replaced by its second best."""
    best = [options[0] for options in by_parameter]
    yield _without_overlap(best)
    for number, options in enumerate(by_parameter):
        for other in options[1:]:
            yield _without_overlap([*best[:number], other, *best[number + 1 :]])


def _without_overlap(options: Sequence[_ScoredOption]) -> tuple[tuple[Argument, ...], float]:
    """Return the most probable arguments, one of each option, that do not share a word."""
    best = [arguments[0] for arguments in options]
    spans = sorted(argument.spans[0] for argument, _ in best if argument.kind == SPAN)
    if all(end < start for (_, end), (start, _) in pairwise(spans)):
        return tuple(argument for argument, _ in best), sum(score for _, score in best)
    beam: list[tuple[float, tuple[Argument, ...], frozenset[int]]] = [(0.0, (), frozenset())]
    for arguments in options:
        candidates = []
        for argument, more in arguments:
            words = frozenset(n for first, last in argument.spans for n in range(first, last + 1))
            for score, earlier, taken in beam:
                penalty = OVERLAP_COST * bool(words & taken)
                candidates.append((score + more - penalty, (*earlier, argument), words | taken))
        beam = sorted(candidates, key=lambda item: -item[0])[:MAX_RUNS]
    if beam[0][0] < -OVERLAP_COST:
        return beam[0][1], beam[0][0]
    # The probability of all combinations goes to those without a common word.
    scores = np.array([score for score, *_ in beam])
    mass = sum(np.logaddexp.reduce([score for _, score in arguments]) for arguments in options)
    return beam[0][1], float(scores[0] + min(0.0, mass) - np.logaddexp.reduce(scores))
