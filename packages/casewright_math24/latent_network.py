"""Torch networks for latents: the paper's network, and a network for a contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_math24.latent import INPUT_COUNT
from casewright_mcbr.layers import UNITS

#: Number of hidden units in ``ContrastiveNetwork``.
WIDTH = 256


class PaperNetwork(nn.Module):
    """The paper's network: a hidden layer of 64 units, the latent, and an output for each flag.

    ``latent_training.FLAG_COUNT`` describes the flags.
    """

    def __init__(self, flag_count: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(INPUT_COUNT, UNITS)
        self.norm = nn.LayerNorm(UNITS)
        self.dropout = nn.Dropout(dropout)
        self.flags = nn.Linear(UNITS, flag_count)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    def forward(self, problems: Tensor) -> Tensor:
        """Return the logits of the flags, (n, flags), for inputs (n, 44)."""
        logits: Tensor = self.flags(self.dropout(self.norm(torch.relu(self.hidden(problems)))))
        return logits


class ContrastiveNetwork(nn.Module):
    """A network of two layers, whose output is the latent, and a head that classifies latents."""

    def __init__(self, class_count: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(INPUT_COUNT, WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.latent = nn.Linear(WIDTH, UNITS)
        self.classes = nn.Linear(UNITS, class_count)

    def forward(self, problems: Tensor) -> tuple[Tensor, Tensor]:
        """Return latents of length 1, (n, 64), and logits of the classes, (n, classes)."""
        hidden = self.dropout(torch.relu(self.first(problems)))
        latents = nn.functional.normalize(self.latent(hidden), dim=1)
        # Without a factor, the logits would be small, since the latents have length 1.
        return latents, self.classes(latents) * 10
