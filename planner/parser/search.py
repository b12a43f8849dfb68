"""Beam search for the most probable plans, with masks that admit only valid plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.budget import BudgetCheck, unbounded
from casewright.planner.parser.layers import MASKED_SCORE, Floats, log_softmax
from casewright.planner.parser.message import Message
from casewright.planner.parser.options import OptionMasks
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    MAX_SPAN_WORDS,
    NUMBER,
    PLACE_COUNT,
    PLAIN_COUNT,
    SPAN,
    STEP,
    Argument,
    ReadStep,
    write_plan,
)
from casewright.planner.parser.pointing import Pointers

#: Maximum numbers of hypotheses (unfinished plans), of next tools, and of options per argument.
BEAM_WIDTH, MAX_NEXT_TOOLS, MAX_OPTIONS = 3, 3, 2
#: Number of spans that are tried for each argument if two arguments of a step would share a word.
MAX_SPANS = 8
#: Penalty in nats if two arguments of a step share a word; in training plans, they never do.
OVERLAP_COST = 30.0
#: Penalty in nats for a reference to a field with an unrelated name, if some field has the
#: parameter's name. The value is -log of the share of such references in the training plans.
OTHER_FIELD_COST = 5.8
#: Minimum probability at which a plan may call ``no_evidence``. It is high, since messages without
#: an answer are more frequent in training than in use. On the validation toolboxes, 0.8 is about as
#: good; but if a toolbox has only two or three tools, questions look like small talk.
MIN_NO_EVIDENCE = 0.95
#: Log-probability below which an option is treated as masked.
MIN_LOG_PROBABILITY = -50.0
#: One option of a parameter: the option's possible arguments with their log-probabilities.
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
        tools: The toolbox's number of tools, which stands for the start; then the steps' tools.
    """

    steps: tuple[ReadStep, ...]
    score: float
    inputs: tuple[Floats, ...]
    tools: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A next step without arguments; ``row`` is the index of the hypothesis that it extends."""

    row: int
    tool: int
    score: float
    parameters: list[int]


class PlanSearch:
    """Searches for the most probable plans of a message; ``excess`` checks a budget."""

    def __init__(
        self,
        pointers: Pointers,
        options: OptionMasks,
        message: Message,
        context: Mapping[str, Any],
        excess: BudgetCheck = unbounded,
    ) -> None:
        self._pointers, self._options = pointers, options
        self._schema, self._message = options.schema, message
        self._excess = excess
        #: Number of the context fields' nodes.
        self._field_count = max(1, len(message.fields))
        context_mask = options.context_of(message, context, self._field_count)
        masks = [options.plain_of(message), options.choices, context_mask]
        #: Mask of the options that need no earlier step (parameters, options).
        self._allowed = np.concatenate(masks, 1)
        self._allowed_numbers = options.numbers_of(message)
        no_costs = np.zeros((len(masks[0]), masks[0].shape[1] + masks[1].shape[1]))
        field_costs, result_costs = np.split(
            OTHER_FIELD_COST * options.unrelated_of(message), [self._field_count], axis=1
        )
        result_costs = np.tile(result_costs, (1, PLACE_COUNT))
        #: Penalties of the options (parameters, options).
        self._costs = np.concatenate([no_costs, field_costs, result_costs], 1)
        has_value = self._allowed.any(1)
        #: Two masks of the callable tools; the index is True if an earlier step has results.
        self._callable = [
            options.callable_with(has_value | (options.takes_step & has_results))
            for has_results in (False, True)
        ]

    def plans(self, max_steps: int) -> list[ScoredSteps]:
        """Return plans with at most ``max_steps`` steps, the most probable first."""
        active = [_Hypothesis((), 0.0, (self._pointers.start,), (len(self._schema.tools),))]
        plans: list[ScoredSteps] = []
        for place in range(min(max_steps, PLACE_COUNT - 1) + 1):
            states, scores = self._score(active, must_end=place >= max_steps)
            top_tools = _top(scores[:, :-1], MAX_NEXT_TOOLS)
            drafts = []
            for row, hypothesis in enumerate(active):
                if hypothesis.steps:
                    score = hypothesis.score + float(scores[row, -1])
                    plans.append(ScoredSteps(hypothesis.steps, score))
                drafts += [
                    _Draft(row, tool, hypothesis.score + added, self._schema.parameters_of(tool))
                    for tool, added in top_tools[row]
                ]
            plans.sort(key=lambda plan: -plan.score)
            drafts = sorted(drafts, key=lambda draft: -draft.score)[: 2 * BEAM_WIDTH]
            if len(plans) >= BEAM_WIDTH:
                drafts = [draft for draft in drafts if draft.score > plans[BEAM_WIDTH - 1].score]
            if not drafts or not (active := self._extend(active, states, drafts, place)):
                break
        return plans

    def _score(self, active: Sequence[_Hypothesis], *, must_end: bool) -> tuple[Floats, Floats]:
        """Return states, and log-probabilities of each tool; the last column is the plan's end."""
        inputs = np.stack([np.stack(hypothesis.inputs) for hypothesis in active])
        previous_tools = np.array([hypothesis.tools for hypothesis in active], dtype=np.int64)
        states, logits = self._pointers.tool_logits(inputs, previous_tools)
        usable = np.stack([self._usable_tools(hypothesis, must_end) for hypothesis in active])
        scores = log_softmax(np.where(usable, logits, MASKED_SCORE))
        no_evidence = self._options.no_evidence
        probability = np.exp(scores[0, no_evidence])
        if not active[0].steps and probability < MIN_NO_EVIDENCE:
            # Longer plans have lower probabilities, so a wrong ``no_evidence`` could win. The other
            # tools get the probability of ``no_evidence``.
            scores[0] -= np.log1p(-probability)
            scores[0, no_evidence] = 2 * MIN_LOG_PROBABILITY
        return states, scores

    def _usable_tools(self, hypothesis: _Hypothesis, must_end: bool) -> NDArray[np.bool_]:
        """Return a mask (tools + 1,) of possible next tools; the last item is the plan's end."""
        called = {step.tool for step in hypothesis.steps}
        has_results = not called.isdisjoint(self._options.tool_of_result.tolist())
        usable = np.append(self._callable[has_results], bool(called))
        if called:
            usable[self._options.no_evidence] = False
        if must_end or self._options.no_evidence in called:
            usable[:-1] = False
        if self._excess is not unbounded:
            for tool in np.flatnonzero(usable[:-1]).tolist():
                usable[tool] = self._is_within_budget([*hypothesis.steps, ReadStep(tool, ())])
        return usable

    def _is_within_budget(self, steps: Sequence[ReadStep]) -> bool:
        """Return True if the first steps of a plan are within the budget."""
        if self._excess is unbounded:
            return True
        return not self._excess(write_plan(steps, self._schema, self._message))

    def _extend(
        self, active: Sequence[_Hypothesis], states: Floats, drafts: Sequence[_Draft], place: int
    ) -> list[_Hypothesis]:
        """Return the most probable hypotheses that are one step longer."""
        options_by_draft = self._best_options(active, states, drafts, place)
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
            and self._is_within_budget([*active[draft.row].steps, step])
        )
        best = list(islice(affordable, BEAM_WIDTH))
        if not best:
            return []
        inputs = self._pointers.step_inputs([step for _, _, step in best], place)
        return [
            _Hypothesis((*h.steps, step), score, (*h.inputs, step_input), (*h.tools, step.tool))
            for (score, h, step), step_input in zip(best, inputs, strict=True)
        ]

    def _best_options(
        self, active: Sequence[_Hypothesis], states: Floats, drafts: Sequence[_Draft], place: int
    ) -> list[list[list[_ScoredOption]]]:
        """Return, for each draft and each of its parameters, the most probable options."""
        options_by_draft: list[list[list[_ScoredOption]]] = [[] for _ in drafts]
        width = max(len(draft.parameters) for draft in drafts)
        if not width:
            return options_by_draft
        # The index of each argument's draft; ``parameter_of`` has the index of its parameter.
        draft_of = [n for n, draft in enumerate(drafts) for _ in draft.parameters]
        padded = [[*draft.parameters, *[-1] * (width - len(draft.parameters))] for draft in drafts]
        parameters = np.array(padded, dtype=np.int64)
        rows = self._pointers.argument_rows(
            states[[draft.row for draft in drafts]], [draft.tool for draft in drafts], parameters
        )
        parameter_of = parameters[parameters >= 0]
        masks = [self._options.results_of(h.tools[1:], PLACE_COUNT).ravel() for h in active]
        allowed_results = np.stack(masks)[[drafts[n].row for n in draft_of]]
        allowed_results &= self._options.takes_step[parameter_of, None]
        allowed = np.concatenate([self._allowed[parameter_of], allowed_results], 1)
        logits = self._pointers.option_logits(rows, parameter_of, place)
        scores = log_softmax(np.where(allowed, logits, MASKED_SCORE)) - self._costs[parameter_of]
        allowed_numbers = self._allowed_numbers[parameter_of]
        numbers = np.where(allowed_numbers, self._pointers.number_logits(rows), MASKED_SCORE)
        rankings = zip(
            _top(log_softmax(self._pointers.span_logits(rows).reshape(len(rows), -1)), MAX_SPANS),
            _top(log_softmax(numbers), 1),
            _top(log_softmax(self._pointers.result_logits(rows)), 1),
            strict=True,
        )
        top = zip(draft_of, parameter_of.tolist(), _top(scores, MAX_OPTIONS), rankings, strict=True)
        for draft, parameter, options, best in top:
            arguments = [self._option_arguments(parameter, *option, *best) for option in options]
            options_by_draft[draft].append(arguments)
        return options_by_draft

    def _option_arguments(
        self,
        parameter: int,
        option: int,
        score: float,
        spans: _Ranking,
        numbers: _Ranking,
        results: _Ranking,
    ) -> _ScoredOption:
        """Return an option's arguments with log-probabilities: one argument, but several for SPAN.

        Args:
            option: Index of the option; see ``Pointers.option_logits``.
            score: Log-probability of the option.
            spans: The best spans, as flat indices of the array (first words, MAX_SPAN_WORDS).
            numbers: Only the message's best number.
            results: Only the best index of a result.
        """
        if option == SPAN:
            arguments = []
            for cell, span_score in spans:
                first, length = divmod(cell, MAX_SPAN_WORDS)
                span = first, first + length
                arguments.append((Argument(parameter, SPAN, spans=(span,)), score + span_score))
            return arguments
        if option == NUMBER:
            [(number, number_score)] = numbers
            return [(Argument(parameter, NUMBER, numbers=(number,)), score + number_score)]
        if option < PLAIN_COUNT:
            return [(Argument(parameter, option), score)]
        option -= PLAIN_COUNT
        if option < len(self._schema.choices):
            return [(Argument(parameter, CHOICE, node=option), score)]
        option -= len(self._schema.choices)
        if option < self._field_count:
            return [(Argument(parameter, CONTEXT, node=option), score)]
        step, node = divmod(option - self._field_count, len(self._schema.results))
        [(index, index_score)] = results
        score += index_score
        return [(Argument(parameter, STEP, node=node, step=step, index=index), score)]


def _top(scores: Floats, count: int) -> list[_Ranking]:
    """Return the highest scores of each row with their indices: up to ``count``, none masked."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    values = np.take_along_axis(scores, best, 1)
    return [
        [(n, value) for n, value in zip(*row, strict=True) if value > MIN_LOG_PROBABILITY]
        for row in zip(best.tolist(), values.tolist(), strict=True)
    ]


def _combinations(
    by_parameter: Sequence[Sequence[_ScoredOption]],
) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield arguments with their score: the best, then variants with one option changed."""
    best = [options[0] for options in by_parameter]
    yield _without_overlap(best)
    for number, options in enumerate(by_parameter):
        for option in options[1:]:
            yield _without_overlap([*best[:number], option, *best[number + 1 :]])


def _without_overlap(options: Sequence[_ScoredOption]) -> tuple[tuple[Argument, ...], float]:
    """Return the best arguments that share no word, one for each option, and their score."""
    best = [arguments[0] for arguments in options]
    spans = sorted(argument.spans[0] for argument, _ in best if argument.kind == SPAN)
    if all(end < start for (_, end), (start, _) in pairwise(spans)):
        return tuple(argument for argument, _ in best), sum(score for _, score in best)
    beam: list[tuple[float, tuple[Argument, ...], frozenset[int]]] = [(0.0, (), frozenset())]
    for arguments in options:
        candidates = []
        for argument, argument_score in arguments:
            words = frozenset(n for first, last in argument.spans for n in range(first, last + 1))
            for score, earlier, used in beam:
                total = score + argument_score - OVERLAP_COST * bool(words & used)
                candidates.append((total, (*earlier, argument), words | used))
        beam = sorted(candidates, key=lambda item: -item[0])[:MAX_SPANS]
    if beam[0][0] < -OVERLAP_COST:
        return beam[0][1], beam[0][0]
    # Combinations that share a word are impossible, so their probability goes to the others.
    scores = np.array([score for score, *_ in beam])
    log_total = sum(np.logaddexp.reduce([score for _, score in arguments]) for arguments in options)
    return beam[0][1], float(scores[0] + min(0.0, log_total) - np.logaddexp.reduce(scores))
