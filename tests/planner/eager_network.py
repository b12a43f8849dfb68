"""The parser network run by torch, for the search: the reference for ``reading.ArrayNetwork``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from casewright.planner.parser.arrays import (
    ReadCase,
    card_arrays,
    field_likeness,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.layers import Floats
from casewright.planner.parser.message import Message
from casewright.planner.parser.parser_network import Memory, ParserNetwork
from casewright.planner.parser.plan_reading import ReadStep, pointed_nodes
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.tensors_network import (
    case_tensors,
    number_tensors,
    tensors,
    with_context,
)


class EagerNetwork:
    """Implements the methods of ``reading.ArrayNetwork`` with torch's modules."""

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network.requires_grad_(False)

    def encode_toolbox(self, schema: Schema, cases: Sequence[ReadCase]) -> tuple[Any, ...]:
        """Return the encoded toolbox with its cases; there is at least one case."""
        nodes = self._network.encode_toolbox(tensors(card_arrays(schema)), schema.sizes)
        encoded = self._network.encode_messages(
            tensors(message_arrays([message for message, _ in cases]))
        )
        return schema, nodes, cases, case_tensors(schema, cases, encoded)

    def join(self, toolbox: tuple[Any, ...], message: Message) -> _EagerPointers:
        """Return the scores of plans for a message that has words."""
        schema, nodes, cases, encoded_cases = toolbox
        memory = self._network.join(
            self._network.encode_messages(tensors(message_arrays([message]))),
            nodes,
            schema.sizes,
            tensors(pair_arrays(schema, [message])),
            with_context(encoded_cases, schema, cases, [message]),
            torch.ones((1, len(cases)), dtype=torch.bool),
        )
        return _EagerPointers(self._network, memory, schema, message)


class _EagerPointers:
    """Implements the methods of ``pointing.Pointers`` with torch."""

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
        return _array(self._network.start + self._network.place.weight[0])

    def tool_logits(self, inputs: Floats, previous: NDArray[np.int64]) -> tuple[Floats, Floats]:
        rows = _zeros(len(inputs))
        decoded = self._network.decode(self._memory, torch.from_numpy(inputs), rows)
        tools = self._network.tool_logits(self._memory, decoded, torch.from_numpy(previous), rows)
        return _array(decoded[:, -1]), _array(tools[:, -1])

    def argument_rows(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        argument_states = self._network.argument_states(
            self._memory,
            torch.from_numpy(states),
            _zeros(len(states)),
            torch.tensor(tools),
            torch.from_numpy(parameters),
        )
        return _array(argument_states)[parameters >= 0]

    def option_logits(self, states: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        parts = self._network.option_logits(
            self._memory,
            torch.from_numpy(states),
            _zeros(len(states)),
            torch.from_numpy(parameters),
            torch.full((len(states),), step),
            self._likeness,
        )
        return _array(torch.cat([part.flatten(1) for part in parts], 1))

    def span_logits(self, states: Floats) -> Floats:
        spans = self._network.span_logits(
            self._memory, torch.from_numpy(states), _zeros(len(states))
        )
        return _array(spans)

    def result_logits(self, states: Floats) -> Floats:
        return _array(self._network.which(torch.from_numpy(states)))

    def number_logits(self, states: Floats) -> Floats:
        weights, facts, _ = number_tensors([self._message], self._memory.word_count)
        arguments, rows = torch.from_numpy(states), _zeros(len(states))
        return _array(self._network.number_logits(self._memory, arguments, weights, facts, rows))

    def step_inputs(self, steps: Sequence[ReadStep], number: int) -> Floats:
        return np.stack([self._step_input(step, number) for step in steps])

    def _step_input(self, step: ReadStep, number: int) -> Floats:
        memory, arguments = self._memory, step.arguments
        argument_mean = torch.zeros(1, memory.states.shape[-1])
        if arguments:
            weights = torch.zeros(len(arguments), memory.states.shape[1])
            for row, argument in enumerate(arguments):
                first, last = pointed_nodes(
                    argument, self._message, self._schema, memory.word_count, memory.field_count
                )
                weights[row, first:last] = 1 / max(1, last - first)
            values = self._network.argument_embeddings(
                memory,
                _zeros(len(arguments)),
                torch.tensor([argument.parameter for argument in arguments]),
                torch.tensor([argument.kind for argument in arguments]),
                weights,
                torch.tensor([argument.index for argument in arguments]),
            )
            argument_mean = values.mean(0, keepdim=True)
        tool, index = torch.tensor([step.tool]), torch.tensor([number])
        return _array(self._network.step_inputs(memory, _zeros(1), tool, index, argument_mean)[0])


def _zeros(count: int) -> Tensor:
    """Return the message number of each row, which is 0: there is only one message."""
    return torch.zeros(count, dtype=torch.long)


def _array(states: Tensor) -> Floats:
    array: Floats = states.numpy()
    return array
