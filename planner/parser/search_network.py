"""Beam search for the likeliest plans, under the masks by which every plan is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from casewright.planner.parser.arrays import field_likeness, name_likeness
from casewright.planner.parser.layers_network import masked
from casewright.planner.parser.message import Message
from casewright.planner.parser.options import Options, number_for
from casewright.planner.parser.parser_network import LONGEST, PLACES, Memory, ParserNetwork
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    NUMBER,
    SPAN,
    STEP,
    Argument,
    ReadStep,
    pointed,
)
from casewright.planner.parser.tensors_network import number_tensors

#: Readings that are kept, tools that are tried after each, and values that are tried for each
#: argument.
BEAM, TOOLS, VALUES = 3, 3, 2
#: Runs of words that are looked at where two arguments would take the same.
RUNS = 6
#: Nothing is looked up where that is likelier than anything else together.
NOTHING = 0.5
#: What masks refuse is far below this, as a logarithm.
IMPOSSIBLE = -50.0


@dataclass(frozen=True, slots=True)
class Found:
    """A plan that was found, and the logarithm of its probability."""

    steps: tuple[ReadStep, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Beginning:
    steps: tuple[ReadStep, ...]
    score: float
    fed: Tensor
    before: tuple[int, ...]


class PlanSearch:
    """Looks for the likeliest plans for one message.

    Args:
        network: In evaluation.
        memory: The message, joined with its toolbox.
        options: Of the toolbox.
        message: The message.
        context: Its context.
        names: Of ``name_likeness``.
    """

    def __init__(
        self,
        network: ParserNetwork,
        memory: Memory,
        options: Options,
        message: Message,
        context: Mapping[str, Any],
        names: Tensor | None = None,
    ) -> None:
        self._network, self._memory, self._options = network, memory, options
        self._schema, self._message = options.schema, message
        self._plain = options.plain_of(message)
        self._context = options.context_of(message, context, memory.fields)
        if names is None:
            names = torch.from_numpy(name_likeness(self._schema))
        self._likeness = (names, torch.from_numpy(field_likeness(self._schema, [message])))
        self._numbers = number_tensors([message], memory.words)

    def plans(self, most_steps: int) -> list[Found]:
        """Return complete plans, the likeliest first."""
        network = self._network
        start = (network.start + network.place.weight[0])[None]
        alive = [_Beginning((), 0.0, start, (len(self._schema.tools),))]
        found: list[Found] = []
        for place in range(min(most_steps, PLACES - 1) + 1):
            decoded, tools = self._tools(alive, ends=place >= most_steps)
            drafts: list[tuple[int, int, float]] = []
            for row, beginning in enumerate(alive):
                if beginning.steps:
                    found.append(Found(beginning.steps, beginning.score + float(tools[row, -1])))
                scores, numbers = tools[row, :-1].topk(min(TOOLS, tools.shape[1] - 1))
                drafts += [
                    (row, number, beginning.score + score)
                    for score, number in zip(scores.tolist(), numbers.tolist(), strict=True)
                    if score > IMPOSSIBLE
                ]
            found.sort(key=lambda one: -one.score)
            drafts = sorted(drafts, key=lambda one: -one[2])[: 2 * BEAM]
            if len(found) >= BEAM:
                drafts = [one for one in drafts if one[2] > found[BEAM - 1].score]
            if not drafts:
                break
            alive = self._continued(alive, decoded, drafts, place)
            if not alive:
                break
        return found

    def _tools(self, alive: Sequence[_Beginning], *, ends: bool) -> tuple[Tensor, Tensor]:
        """Return the last state of each beginning and what may come next, as logarithms."""
        rows = torch.zeros(len(alive), dtype=torch.long)
        fed = torch.stack([one.fed for one in alive])
        before = torch.tensor([one.before for one in alive])
        decoded = self._network.decode(self._memory, fed, rows)
        scores = self._network.tools(self._memory, decoded, before, rows)[:, -1]
        there = np.array([[*self._usable(one, ends), bool(one.steps)] for one in alive])
        tools = masked(scores, torch.from_numpy(there)).log_softmax(-1)
        nothing = self._options.nothing
        if not alive[0].steps and tools[0, nothing].exp() < NOTHING:
            # A plan of many steps is less likely than one of none only since it has more to tell.
            tools[0, nothing] = 2 * IMPOSSIBLE
        return decoded[:, -1], tools

    def _usable(self, beginning: _Beginning, ends: bool) -> Iterator[bool]:
        """Yield of each tool whether it may be called next."""
        nothing = self._options.nothing
        over = ends or any(step.tool == nothing for step in beginning.steps)
        called = {step.tool for step in beginning.steps}
        fields = any(owner in called for owner, _ in self._schema.results)
        for number in range(len(self._schema.tools)):
            if over or (number == nothing and beginning.steps):
                yield False
                continue
            yield all(
                not one.required
                or self._plain[place].any()
                or self._options.choices[place].any()
                or self._context[place].any()
                or (self._options.steps[place] and fields)
                for place, (tool, one) in enumerate(self._schema.parameters)
                if tool == number
            )

    def _continued(
        self,
        alive: Sequence[_Beginning],
        decoded: Tensor,
        drafts: Sequence[tuple[int, int, float]],
        place: int,
    ) -> list[_Beginning]:
        """Return the likeliest beginnings that are one step longer."""
        own = [self._schema.parameters_of(tool) for _, tool, _ in drafts]
        filled = self._filled(alive, decoded, drafts, own, place)
        made: list[tuple[float, int, ReadStep]] = []
        for number, (row, tool, score) in enumerate(drafts):
            for values, more in _joined(filled[number]):
                step = ReadStep(tool, values)
                if step not in alive[row].steps:
                    made.append((score + more, row, step))
        best = sorted(made, key=lambda one: -one[0])[:BEAM]
        told = [self._told(step, place) for _, _, step in best]
        return [
            _Beginning(
                (*alive[row].steps, step),
                score,
                torch.cat([alive[row].fed, fed]),
                (*alive[row].before, step.tool),
            )
            for (score, row, step), fed in zip(best, told, strict=True)
        ]

    def _filled(
        self,
        alive: Sequence[_Beginning],
        decoded: Tensor,
        drafts: Sequence[tuple[int, int, float]],
        own: Sequence[Sequence[int]],
        place: int,
    ) -> list[list[list[tuple[Argument, float]]]]:
        """Return for each draft's parameters the likeliest arguments, with their logarithms."""
        made: list[list[list[tuple[Argument, float]]]] = [[] for _ in drafts]
        most = max(map(len, own))
        if not most:
            return made
        network, memory = self._network, self._memory
        groups = [number for number, one in enumerate(own) if one]
        zeros = torch.zeros(len(groups), dtype=torch.long)
        parameters = torch.tensor([[*own[n], *[-1] * (most - len(own[n]))] for n in groups])
        states = network.arguments(
            memory,
            decoded[[drafts[n][0] for n in groups]],
            zeros,
            torch.tensor([drafts[n][1] for n in groups]),
            parameters,
        )
        there = parameters >= 0
        flat, which = states[there], parameters[there]
        rows = torch.zeros(len(flat), dtype=torch.long)
        places = torch.full((len(flat),), place)
        parts = network.kinds(memory, flat, rows, which, places, self._likeness)
        owners = [n for n in groups for _ in own[n]]
        allowed = np.stack(
            [
                self._allowed(parameter, [step.tool for step in alive[drafts[n][0]].steps])
                for n, parameter in zip(owners, which.tolist(), strict=True)
            ]
        )
        logits = torch.cat([one.flatten(1).float() for one in parts], 1)
        scores = masked(logits, torch.from_numpy(allowed)).log_softmax(-1)
        values = _Values(self, flat, which.tolist())
        top, options = scores.topk(min(VALUES, scores.shape[1]))
        used: dict[int, set[int]] = {}
        order = sorted(range(len(flat)), key=lambda one: -float(top[one, 0]))
        found: dict[int, list[tuple[Argument, float]]] = {}
        for one in order:
            taken = used.setdefault(owners[one], set())
            found[one] = [
                values.of(one, option, taken, score)
                for score, option in zip(top[one].tolist(), options[one].tolist(), strict=True)
                if score > IMPOSSIBLE
            ]
            best = found[one][0][0]
            if best.kind == SPAN:
                taken.update(range(best.spans[0][0], best.spans[0][1] + 1))
        for one, owner in enumerate(owners):
            made[owner].append(found[one])
        return made

    def _allowed(self, parameter: int, before: Sequence[int]) -> Any:
        return np.concatenate(
            [
                self._plain[parameter],
                self._options.choices[parameter],
                self._context[parameter],
                self._options.results_of(parameter, before, PLACES).ravel(),
            ]
        )

    def _told(self, step: ReadStep, place: int) -> Tensor:
        """Return what a step says to the next (1, SIZE)."""
        memory, schema, network = self._memory, self._schema, self._network
        taken = torch.zeros(1, memory.states.shape[-1])
        if step.arguments:
            weights = torch.zeros(len(step.arguments), memory.states.shape[1])
            for row, one in enumerate(step.arguments):
                first, last = pointed(one, self._message, schema, memory.words, memory.fields)
                weights[row, first:last] = 1 / max(1, last - first)
            taken = network.values(
                memory,
                torch.zeros(len(step.arguments), dtype=torch.long),
                torch.tensor([one.parameter for one in step.arguments]),
                torch.tensor([one.kind for one in step.arguments]),
                weights,
                torch.tensor([one.index for one in step.arguments]),
            ).mean(0, keepdim=True)
        zero = torch.zeros(1, dtype=torch.long)
        return network.step_inputs(
            memory, zero, torch.tensor([step.tool]), torch.tensor([place]), taken
        )


class _Values:
    """Arguments from options: the best words, number or result of each."""

    def __init__(self, search: PlanSearch, states: Tensor, parameters: Sequence[int]) -> None:
        self._search, self._parameters = search, parameters
        network, memory = search._network, search._memory
        rows = torch.zeros(len(states), dtype=torch.long)
        runs = network.spans(memory, states, rows).flatten(1).log_softmax(-1)
        top = runs.topk(min(RUNS, runs.shape[1]))
        self._runs = list(zip(top.values.tolist(), top.indices.tolist(), strict=True))
        self._results = network.which(states).float().log_softmax(-1)
        weights, facts, there = search._numbers
        found = network.numbers(memory, states, weights, facts, rows)
        fits = torch.zeros((len(parameters), there.shape[1]), dtype=torch.bool)
        for row, one in enumerate(parameters):
            for n, number in enumerate(search._message.numbers):
                fits[row, n] = number_for(search._schema.parameters[one][1], number) is not None
        self._numbers = masked(found, fits).log_softmax(-1)

    def of(self, row: int, option: int, taken: set[int], score: float) -> tuple[Argument, float]:
        """Return an option as an argument, with the logarithm of its probability.

        Args:
            row: Of the argument.
            option: Its number among plain kinds, choices, context fields and results.
            taken: Words that other arguments of its step have.
            score: Of the option.
        """
        schema, memory = self._search._schema, self._search._memory
        parameter = self._parameters[row]
        if option == SPAN:
            span, more = self._run(row, taken)
            return Argument(parameter, SPAN, spans=(span,)), score + more
        if option == NUMBER:
            best, number = self._numbers[row].max(0)
            return Argument(parameter, NUMBER, numbers=(int(number),)), score + float(best)
        plain = self._search._plain.shape[1]
        if option < plain:
            return Argument(parameter, option), score
        option -= plain
        if option < len(schema.choices):
            return Argument(parameter, CHOICE, node=option), score
        option -= len(schema.choices)
        if option < memory.fields:
            return Argument(parameter, CONTEXT, node=option), score
        step, node = divmod(option - memory.fields, len(schema.results))
        best, index = self._results[row].max(0)
        result = Argument(parameter, STEP, node=node, step=step, index=int(index))
        return result, score + float(best)

    def _run(self, row: int, taken: set[int]) -> tuple[tuple[int, int], float]:
        runs = []
        for score, place in zip(*self._runs[row], strict=True):
            first, more = divmod(place, LONGEST)
            if score > IMPOSSIBLE:
                runs.append(((first, first + more), score))
        free = [one for one in runs if taken.isdisjoint(range(one[0][0], one[0][1] + 1))]
        return (free or runs)[0]


def _joined(
    filled: Sequence[Sequence[tuple[Argument, float]]],
) -> Iterator[tuple[tuple[Argument, ...], float]]:
    """Yield the likeliest arguments together, and with one of them replaced by its second."""
    best = [own[0] for own in filled]
    total = sum(score for _, score in best)
    yield tuple(one for one, _ in best), total
    for place, own in enumerate(filled):
        for other, score in own[1:]:
            changed = [other if n == place else one for n, (one, _) in enumerate(best)]
            yield tuple(changed), total - best[place][1] + score
