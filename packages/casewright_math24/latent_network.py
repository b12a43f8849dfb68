"""Torch networks for latents: the paper's network, and a network for a contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_math24.latent import INPUT_COUNT
from casewright_mcbr.layers import LATENT_SIZE

#: Number of hidden units in ``ContrastiveNetwork``.
WIDTH = 256


class PaperNetwork(nn.Module):
    """The paper's network: a hidden layer of 64 units, which is the latent, and an output per flag.

    ``latent_training.FLAG_COUNT`` describes the flags.
    """

    def __init__(self, flag_count: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(INPUT_COUNT, LATENT_SIZE)
        self.norm = nn.LayerNorm(LATENT_SIZE)
        self.dropout = nn.Dropout(dropout)
        self.flags = nn.Linear(LATENT_SIZE, flag_count)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the flags' logits (n, flags) for inputs (n, 44)."""
        logits: Tensor = self.flags(self.dropout(self.norm(torch.relu(self.hidden(inputs)))))
        return logits


class ContrastiveNetwork(nn.Module):
    """A network in which two layers compute the latent, and a third layer classifies the latent."""

    def __init__(self, class_count: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(INPUT_COUNT, WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.latent = nn.Linear(WIDTH, LATENT_SIZE)
        self.classes = nn.Linear(LATENT_SIZE, class_count)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return latents (n, 64) of length 1 and logits (n, classes), for inputs (n, 44)."""
        hidden = self.dropout(torch.relu(self.first(inputs)))
        latents = nn.functional.normalize(self.latent(hidden), dim=1)
        # Latents of length 1 give small logits, so the logits are multiplied by 10.
        return latents, self.classes(latents) * 10
