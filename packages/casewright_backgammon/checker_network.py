"""The torch network that counts the checkers in the slices of a board (MCBR-RAG, Marom 2024).

All slices have the same weights. The last layers also receive a summary of all 26 slices, which
shows the colours of checkers and of empty points.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_backgammon.position import CHECKERS
from casewright_mcbr.blocks_network import convolution

#: Number of classes: none, 1 to 15 light checkers, 1 to 15 dark checkers.
CLASSES = 1 + 2 * CHECKERS
HIDDEN = 128


class CheckerNetwork(nn.Module):
    """A network from the pixels of slices to logits of the classes of their checkers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *convolution(3, 24, 5, stride=2),
            *convolution(24, 32, 3),
            nn.MaxPool2d(2),
            *convolution(32, 64, 3),
            nn.MaxPool2d(2),
            *convolution(64, 96, 3),
        )
        self.dense = nn.Linear(96 * 12, HIDDEN)
        self.whole = nn.Linear(2 * HIDDEN, HIDDEN)
        self.own = nn.Linear(HIDDEN, HIDDEN)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(HIDDEN, CLASSES)

    def forward(self, slices: Tensor) -> Tensor:
        """Return logits (n, 26, 31) for slices (n, 26, 3, 96, 24) of levels from 0 to 1."""
        boards, count = slices.shape[:2]
        maps = self.features((slices - 0.5).flatten(0, 1))
        # A stack is in the middle of its slice, so only the heights matter.
        rows = maps.amax(3).flatten(1)
        by_slice = torch.relu(self.dense(rows)).reshape(boards, count, HIDDEN)
        summary = torch.cat([by_slice.mean(1), by_slice.amax(1)], dim=1)
        hidden = torch.relu(self.own(by_slice) + self.whole(summary).unsqueeze(1))
        logits: Tensor = self.out(self.drop(hidden))
        return logits
