"""The network as torch trains it, where the search looks: what the faster one is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from casewright.planner.parser.arrays import (
    Case,
    card_arrays,
    field_likeness,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.case_network import CaseArrays
from casewright.planner.parser.layers import Floats
from casewright.planner.parser.message import Message
from casewright.planner.parser.parser_network import Memory, ParserNetwork
from casewright.planner.parser.plan_reading import ReadStep, pointed
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.tensors_network import (
    case_tensors,
    number_tensors,
    tensors,
    with_fields,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Toolbox:
    schema: Schema
    nodes: Tensor
    cases: Sequence[Case]
    known: CaseArrays


class EagerNetwork:
    """A ``runtime.Network`` that runs torch's modules.

    Args:
        network: In evaluation.
    """

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network

    @torch.inference_mode()
    def toolbox(self, schema: Schema, cases: Sequence[Case]) -> _Toolbox:
        """Return a toolbox with its cases, of which there is at least one."""
        nodes = self._network.schema(tensors(card_arrays(schema)), schema.sizes)
        encoded = self._network.read(tensors(message_arrays([message for message, _ in cases])))
        return _Toolbox(schema, nodes, cases, case_tensors(schema, cases, encoded))

    @torch.inference_mode()
    def join(self, toolbox: _Toolbox, message: Message) -> EagerPointers:
        """Return what points for a message that has words."""
        schema, cases = toolbox.schema, toolbox.cases
        memory = self._network.join(
            self._network.read(tensors(message_arrays([message]))),
            toolbox.nodes,
            schema.sizes,
            tensors(pair_arrays(schema, [message])),
            with_fields(toolbox.known, schema, cases, [message]),
            torch.ones((1, len(cases)), dtype=torch.bool),
        )
        return EagerPointers(self._network, memory, schema, message)


class EagerPointers:
    """Points as ``pointing.Pointers`` does, by torch."""

    def __init__(
        self, network: ParserNetwork, memory: Memory, schema: Schema, message: Message
    ) -> None:
        self._network, self._memory = network, memory
        self._schema, self._message = schema, message
        self._likeness = (
            torch.from_numpy(name_likeness(schema)),
            torch.from_numpy(field_likeness(schema, [message])),
        )

    @property
    def start(self) -> Floats:
        """See ``pointing.Pointers.start``."""
        return _array((self._network.start + self._network.place.weight[0]).detach())

    @torch.inference_mode()
    def next(self, fed: Floats, before: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """See ``pointing.Pointers.next``."""
        rows = _zeros(len(fed))
        decoded = self._network.decode(self._memory, torch.from_numpy(fed), rows)
        tools = self._network.tools(self._memory, decoded, torch.tensor(before), rows)
        return _array(decoded[:, -1]), _array(tools[:, -1])

    @torch.inference_mode()
    def arguments(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        """See ``pointing.Pointers.arguments``."""
        own = self._network.arguments(
            self._memory,
            torch.from_numpy(states),
            _zeros(len(states)),
            torch.tensor(tools),
            torch.from_numpy(parameters),
        )
        return _array(own)[parameters >= 0]

    @torch.inference_mode()
    def options(self, states: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        """See ``pointing.Pointers.options``."""
        parts = self._network.kinds(
            self._memory,
            torch.from_numpy(states),
            _zeros(len(states)),
            torch.from_numpy(parameters),
            torch.full((len(states),), step),
            self._likeness,
        )
        return _array(torch.cat([part.flatten(1) for part in parts], 1))

    @torch.inference_mode()
    def runs(self, states: Floats) -> Floats:
        """See ``pointing.Pointers.runs``."""
        own = torch.from_numpy(states)
        return _array(self._network.spans(self._memory, own, _zeros(len(states))))

    @torch.inference_mode()
    def results(self, states: Floats) -> Floats:
        """See ``pointing.Pointers.results``."""
        return _array(self._network.which(torch.from_numpy(states)))

    @torch.inference_mode()
    def numbers(self, states: Floats) -> Floats:
        """See ``pointing.Pointers.numbers``."""
        weights, facts, _ = number_tensors([self._message], self._memory.words)
        own = torch.from_numpy(states)
        rows = _zeros(len(states))
        return _array(self._network.numbers(self._memory, own, weights, facts, rows))

    @torch.inference_mode()
    def said(self, step: ReadStep, number: int) -> Floats:
        """See ``pointing.Pointers.said``."""
        memory, arguments = self._memory, step.arguments
        taken = torch.zeros(1, memory.states.shape[-1])
        if arguments:
            weights = torch.zeros(len(arguments), memory.states.shape[1])
            for row, argument in enumerate(arguments):
                first, last = pointed(
                    argument, self._message, self._schema, memory.words, memory.fields
                )
                weights[row, first:last] = 1 / max(1, last - first)
            values = self._network.values(
                memory,
                _zeros(len(arguments)),
                torch.tensor([argument.parameter for argument in arguments]),
                torch.tensor([argument.kind for argument in arguments]),
                weights,
                torch.tensor([argument.index for argument in arguments]),
            )
            taken = values.mean(0, keepdim=True)
        tool, after = torch.tensor([step.tool]), torch.tensor([number])
        return _array(self._network.step_inputs(memory, _zeros(1), tool, after, taken)[0])


def _zeros(count: int) -> Tensor:
    """Return the message's number for each of some rows: there is only one."""
    return torch.zeros(count, dtype=torch.long)


def _array(states: Tensor) -> Floats:
    array: Floats = states.numpy()
    return array
