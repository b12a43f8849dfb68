"""The network that counts the checkers of a slice, after MCBR-RAG's (Marom 2024) checker network.

One network reads all slices. What is light and what is dark, and what an empty point looks like,
only the other slices tell: a summary of all 26 goes into the last layers.

torch is imported with this module: only training imports it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_backgammon.position import CHECKERS

#: None, 1 to 15 light checkers, 1 to 15 dark ones.
CLASSES = 1 + 2 * CHECKERS
HIDDEN = 128


class CheckerNetwork(nn.Module):
    """Colours of boards' slices in, logits of what stands on them out."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_stage(3, 24, 5, stride=2),
            *_stage(24, 32, 3),
            nn.MaxPool2d(2),
            *_stage(32, 64, 3),
            nn.MaxPool2d(2),
            *_stage(64, 96, 3),
        )
        self.dense = nn.Linear(96 * 12, HIDDEN)
        self.whole = nn.Linear(2 * HIDDEN, HIDDEN)
        self.own = nn.Linear(HIDDEN, HIDDEN)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(HIDDEN, CLASSES)

    def forward(self, slices: Tensor) -> Tensor:
        """Return logits (n, 26, 31) for slices (n, 26, 3, 96, 24) of levels from 0 to 1."""
        boards, count = slices.shape[:2]
        found = self.features((slices - 0.5).flatten(0, 1))
        # A stack stands in the middle of its slice: what counts is how high things are.
        rows = found.amax(3).flatten(1)
        each = torch.relu(self.dense(rows)).reshape(boards, count, HIDDEN)
        summary = torch.cat([each.mean(1), each.amax(1)], dim=1)
        hidden = torch.relu(self.own(each) + self.whole(summary).unsqueeze(1))
        logits: Tensor = self.out(self.drop(hidden))
        return logits


class CheckerProbabilities(nn.Module):
    """What is exported: probabilities (n, 26, 31) instead of logits."""

    def __init__(self, network: CheckerNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, slices: Tensor) -> Tensor:
        """Return the probabilities of none, 1 to 15 light and 1 to 15 dark checkers."""
        return torch.softmax(self.network(slices), dim=-1)


def _stage(incoming: int, outgoing: int, width: int, *, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(incoming, outgoing, width, stride=stride, padding=width // 2, bias=False),
        nn.BatchNorm2d(outgoing),
        nn.ReLU(),
    ]
