"""The multi-task network whose bottleneck is the latent (MCBR-RAG, section 5.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_backgammon.encoding import INPUTS
from casewright_backgammon.latent import CHANCES
from casewright_mcbr.layers import UNITS


class MultiTaskNetwork(nn.Module):
    """An encoder with a latent of 64, with heads for the chances and for the encoding.

    Args:
        width: Units between the encoding and the latent.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(INPUTS, width)
        self.latent = nn.Linear(width, UNITS)
        self.value = nn.Linear(UNITS, CHANCES)
        self.decoder = nn.Linear(UNITS, INPUTS)

    def forward(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of the chances (n, 5) and the decoded encoding (n, 198) of (n, 198)."""
        latent = torch.relu(self.latent(torch.relu(self.hidden(encoded))))
        return self.value(latent), self.decoder(latent)
