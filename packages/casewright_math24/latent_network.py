"""The networks whose inner numbers are latents: the paper's, and one taught to compare."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_math24.counts import INPUTS
from casewright_math24.latent import UNITS

#: Hidden numbers of the network that compares.
WIDTH = 256


class PaperNetwork(nn.Module):
    """Numbers and counts, a layer of 64 that is the latent, and flags of the solution's classes.

    Args:
        flags: How many flags there are.
        dropout: Share of the latent's numbers that a training step leaves out.
    """

    def __init__(self, flags: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(INPUTS, UNITS)
        self.norm = nn.LayerNorm(UNITS)
        self.dropout = nn.Dropout(dropout)
        self.flags = nn.Linear(UNITS, flags)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    def forward(self, problems: Tensor) -> Tensor:
        """Return logits of the flags, tensor (n, flags), for inputs (n, 44)."""
        made: Tensor = self.flags(self.dropout(self.norm(torch.relu(self.hidden(problems)))))
        return made


class ComparingNetwork(nn.Module):
    """Two layers, the second of which is the latent, and the classes that it should tell.

    Args:
        classes: How many classes there are.
        dropout: Share of the hidden numbers that a training step leaves out.
    """

    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.latent = nn.Linear(WIDTH, UNITS)
        self.classes = nn.Linear(UNITS, classes)

    def forward(self, problems: Tensor) -> tuple[Tensor, Tensor]:
        """Return latents of length 1, tensor (n, 64), and logits of the classes, (n, classes)."""
        hidden = self.dropout(torch.relu(self.first(problems)))
        latents = nn.functional.normalize(self.latent(hidden), dim=1)
        # Of vectors of length 1, logits would lie between -1 and 1.
        return latents, self.classes(latents) * 10
