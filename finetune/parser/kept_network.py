"""States of the encoder's layers that stay as they are, computed once a text."""

from __future__ import annotations

import torch
from torch import Tensor

from casewright.planner.parser.parser_network import ParserNetwork


class KeptStates:
    """Remembers token states by a text's tokens, in bfloat16.

    Args:
        network: Whose lower layers are run.
    """

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network
        self._states: dict[bytes, Tensor] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (n, tokens, encoder), zeros where there is no token."""
        lengths = mask.sum(-1).tolist()
        keys = [
            ids[row, :size].numpy().tobytes() + types[row, :size].to(torch.int8).numpy().tobytes()
            for row, size in enumerate(lengths)
        ]
        new = [row for row, key in enumerate(keys) if key not in self._states]
        if new:
            own = torch.tensor(new)
            training = self._network.encoder.training
            self._network.encoder.eval()
            with torch.no_grad():
                states = self._network.lower(ids[own], mask[own], types[own])
            self._network.encoder.train(training)
            for row, made in zip(new, states, strict=True):
                self._states[keys[row]] = made[: lengths[row]].to(torch.bfloat16).clone()
        found = [self._states[key] for key in keys]
        return torch.nn.utils.rnn.pad_sequence(found, batch_first=True)
