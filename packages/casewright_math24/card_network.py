"""The torch network that reads a card: convolutions, then dense layers for each corner.

MCBR-RAG (Marom 2024) reads upright cards in one font with 3×3 convolutions, pooling, and a softmax
for each number. Here, the dense layers predict each number from the features of its corner and from
a summary of the whole image. The corner is large enough for the numbers of turned cards.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_math24.puzzle import LARGEST
from casewright_mcbr.blocks_network import convolution

#: Number of channels after each convolution, and of hidden units for each number.
CHANNELS, HIDDEN_UNITS = (16, 24, 40, 64), 80
#: Width of the last feature map, and of the part of the map around a corner.
MAP_WIDTH, CORNER_WIDTH = 12, 7


class CardNetwork(nn.Module):
    """A network from the grey levels of an image to the logits of the four numbers on it."""

    def __init__(self) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.features = nn.Sequential(
            *convolution(1, first, 5, stride=2),
            *convolution(first, second, 3),
            nn.MaxPool2d(2, ceil_mode=True),
            *convolution(second, third, 3),
            nn.MaxPool2d(2, ceil_mode=True),
            *convolution(third, fourth, 3),
        )
        self.corner = nn.Linear(fourth * CORNER_WIDTH * CORNER_WIDTH, HIDDEN_UNITS)
        self.whole = nn.Linear(2 * fourth, HIDDEN_UNITS)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(HIDDEN_UNITS, LARGEST)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 4, 13) for images (n, 90, 90) of grey levels from 0 to 1."""
        maps = self.features(_standardize(images).unsqueeze(1))
        starts = (0, MAP_WIDTH - CORNER_WIDTH)
        corners = [
            maps[:, :, row : row + CORNER_WIDTH, column : column + CORNER_WIDTH].flatten(1)
            for row in starts
            for column in starts
        ]
        stacked = torch.stack(corners, dim=1)
        summary = torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], dim=1)
        hidden = torch.relu(self.corner(stacked) + self.whole(summary).unsqueeze(1))
        logits: Tensor = self.out(self.drop(hidden))
        return logits


def _standardize(images: Tensor) -> Tensor:
    """Return images with a standard deviation near 1, in which ink is positive.

    Ink covers less area than the background, so the longer tail of the distribution of grey levels
    is ink. The sign of the third moment shows on which side this tail is.
    """
    centred = images - images.mean((1, 2), keepdim=True)
    deviation = (centred**2).mean((1, 2), keepdim=True).sqrt()
    scaled = centred / (deviation + 0.02)
    return scaled * torch.sign((scaled**3).mean((1, 2), keepdim=True))
