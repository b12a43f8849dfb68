"""The network that reads a card: convolutions, a dense layer, four choices among 13 numbers.

After MCBR-RAG (Marom 2024), which reads upright cards of one font with convolutions of 3×3,
pooling, and one softmax a number. Here the dense layer is shared by the four numbers: it sees the
features around one corner, wide enough for a turned card, and a summary of the whole image.

torch is imported with this module: only training imports it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_math24.puzzle import LARGEST

#: Channels after each stage; cells of the last feature map's side, and of a corner's.
CHANNELS = (16, 24, 40, 64)
MAP, CORNER = 12, 7
HIDDEN = 80


class CardNetwork(nn.Module):
    """Grey levels of an image in, logits of four numbers out."""

    def __init__(self) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.features = nn.Sequential(
            *_stage(1, first, 5, stride=2),
            *_stage(first, second, 3),
            nn.MaxPool2d(2, ceil_mode=True),
            *_stage(second, third, 3),
            nn.MaxPool2d(2, ceil_mode=True),
            *_stage(third, fourth, 3),
        )
        self.corner = nn.Linear(fourth * CORNER * CORNER, HIDDEN)
        self.whole = nn.Linear(2 * fourth, HIDDEN)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(HIDDEN, LARGEST)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 4, 13) for images (n, 90, 90) of grey levels from 0 to 1."""
        found = self.features(_standard(images).unsqueeze(1))
        starts = (0, MAP - CORNER)
        corners = torch.stack(
            [
                found[:, :, row : row + CORNER, column : column + CORNER].flatten(1)
                for row in starts
                for column in starts
            ],
            dim=1,
        )
        summary = torch.cat([found.mean((2, 3)), found.amax((2, 3))], dim=1)
        hidden = torch.relu(self.corner(corners) + self.whole(summary).unsqueeze(1))
        logits: Tensor = self.out(self.drop(hidden))
        return logits


class CardProbabilities(nn.Module):
    """What is exported: probabilities (n, 4, 13) instead of logits."""

    def __init__(self, network: CardNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Return the probabilities of the numbers 1 to 13 at each of the four places."""
        return torch.softmax(self.network(images), dim=-1)


def _stage(incoming: int, outgoing: int, width: int, *, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(incoming, outgoing, width, stride=stride, padding=width // 2, bias=False),
        nn.BatchNorm2d(outgoing),
        nn.ReLU(),
    ]


def _standard(images: Tensor) -> Tensor:
    """Make ink positive, of whatever grey on whatever paper, at unit deviation.

    Ink covers less than the paper does, so it is the longer tail of the grey levels.
    """
    centred = images - images.mean((1, 2), keepdim=True)
    deviation = (centred**2).mean((1, 2), keepdim=True).sqrt()
    scaled = centred / (deviation + 0.02)
    return scaled * torch.sign((scaled**3).mean((1, 2), keepdim=True))
