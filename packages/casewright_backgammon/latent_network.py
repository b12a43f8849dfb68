"""The position network in torch, with a decoder of the latent (MCBR-RAG, section 5.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_backgammon.encoding import INPUT_COUNT
from casewright_backgammon.latent import CHANCE_COUNT
from casewright_mcbr.layers import LATENT_SIZE


class MultiTaskNetwork(nn.Module):
    """A network from an encoding to a latent, and from the latent to chances and the encoding."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(INPUT_COUNT, width)
        self.latent = nn.Linear(width, LATENT_SIZE)
        self.value = nn.Linear(LATENT_SIZE, CHANCE_COUNT)
        self.decoder = nn.Linear(LATENT_SIZE, INPUT_COUNT)

    def forward(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of chances (n, 5) and reconstructions (n, 198) of encodings (n, 198)."""
        latent = torch.relu(self.latent(torch.relu(self.hidden(encoded))))
        return self.value(latent), self.decoder(latent)
