"""Gold plans of an episode as the arrays that the loss compares with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.parser.episodes import Episode
from casewright.planner.parser.options import Options
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    STEP,
    Argument,
    pointed,
)

Ints = NDArray[np.int64]
#: Target of what is not to be learned; torch's own choice.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Targets:
    """Gold plans; arguments and steps of all messages stand in one row each.

    Attributes:
        tools: Of each message's steps, then the end (n, places).
        before: The tool before each place (n, places); see ``case_network.continued``.
        step_rows, step_places, step_tools: Of each step: message, number from 0, tool.
        step_parameters: Its tool's parameters, -1 beyond (steps, most).
        steps, slots: Of each argument: its step's number here, and its place in the step.
        parameters, kinds, indices: Of each argument.
        allowed: Plain kinds, choices, context fields, results by step (arguments, options).
        options: Which of these is right.
        weights: Over the nodes that an argument points to (arguments, nodes).
        spans: Which runs are right (arguments, words, longest).
        numbers: Which numbers are right (arguments, numbers).
    """

    tools: Ints
    before: Ints
    step_rows: Ints
    step_places: Ints
    step_tools: Ints
    step_parameters: Ints
    steps: Ints
    slots: Ints
    parameters: Ints
    kinds: Ints
    indices: Ints
    allowed: NDArray[np.bool_]
    options: Ints
    weights: NDArray[np.float32]
    spans: NDArray[np.bool_]
    numbers: NDArray[np.bool_]


def targets_of(episode: Episode, words: int, places: int, longest: int) -> Targets:
    """Return the gold plans of an episode's messages.

    Args:
        episode: The messages and plans.
        words: Words of the longest message, examples included.
        places: Steps that results may be of.
        longest: Most words of a span.
    """
    schema = episode.schema
    asked = range(episode.asked)
    messages = episode.messages
    fields = max(1, *(len(one.fields) for one in messages))
    most_numbers = max(1, *(len(one.numbers) for one in messages))
    end = len(schema.tools)
    longest_plan = max(len(episode.plans[row]) for row in asked)
    tools = np.full((episode.asked, longest_plan + 1), IGNORED, dtype=np.int64)
    before = np.full((episode.asked, longest_plan + 1), -1, dtype=np.int64)
    options = Options(schema)
    steps: list[tuple[int, int, int, list[int]]] = []
    rows: list[tuple[int, int, Argument]] = []
    allowed, wanted = [], []
    for row in asked:
        plan = episode.plans[row]
        own = [step.tool for step in plan]
        tools[row, : len(own) + 1] = [*own, end]
        before[row, : len(own) + 1] = [end, *own]
        plain = options.plain_of(messages[row])
        context = options.context_of(messages[row], episode.contexts[row], fields)
        for place, step in enumerate(plan):
            for slot, one in enumerate(step.arguments):
                rows.append((len(steps), slot, one))
                results = options.results_of(one.parameter, own[:place], places)
                parts = (
                    plain[one.parameter],
                    options.choices[one.parameter],
                    context[one.parameter],
                    results.ravel(),
                )
                allowed.append(np.concatenate(parts))
                wanted.append(_option(one, parts, len(schema.results)))
            steps.append((row, place, step.tool, schema.parameters_of(step.tool)))
    most = max(1, *(len(one[3]) for one in steps))
    weights = np.zeros((len(rows), words + fields + schema.size), dtype=np.float32)
    spans = np.zeros((len(rows), words, longest), dtype=bool)
    numbers = np.zeros((len(rows), most_numbers), dtype=bool)
    for number, (owner, _, one) in enumerate(rows):
        first, last = pointed(one, messages[steps[owner][0]], schema, words, fields)
        weights[number, first:last] = 1 / max(1, last - first)
        numbers[number, list(one.numbers)] = True
        for start, stop in one.spans:
            if stop - start < longest:
                spans[number, start, stop - start] = True
    return Targets(
        tools=tools,
        before=before,
        step_rows=_ints([one[0] for one in steps]),
        step_places=_ints([one[1] for one in steps]),
        step_tools=_ints([one[2] for one in steps]),
        step_parameters=_ints([[*one[3], *[-1] * (most - len(one[3]))] for one in steps]),
        steps=_ints([one[0] for one in rows]),
        slots=_ints([one[1] for one in rows]),
        parameters=_ints([one[2].parameter for one in rows]),
        kinds=_ints([one[2].kind for one in rows]),
        indices=_ints([one[2].index for one in rows]),
        allowed=np.array(allowed),
        options=_ints(wanted),
        weights=weights,
        spans=spans,
        numbers=numbers,
    )


def _ints(values: Sequence[Any]) -> Ints:
    return np.array(values, dtype=np.int64)


def _option(one: Argument, parts: tuple[NDArray[np.bool_], ...], results: int) -> int:
    """Return which option an argument is; none where masks refuse it, as for a cut message."""
    plain, choices, context, _ = parts
    place = one.kind
    if one.kind == CHOICE:
        place = len(plain) + one.node
    elif one.kind == CONTEXT:
        place = len(plain) + len(choices) + one.node
    elif one.kind == STEP:
        place = len(plain) + len(choices) + len(context) + one.step * results + one.node
    return place if np.concatenate(parts)[place] else IGNORED
