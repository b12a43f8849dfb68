"""Building blocks of the convolutional networks, with torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def convolution(
    incoming: int, outgoing: int, width: int, *, stride: int = 1, dilation: int = 1
) -> list[nn.Module]:
    """Return a convolution (``width`` × ``width``) with batch normalisation and ReLU."""
    return [
        nn.Conv2d(
            incoming,
            outgoing,
            width,
            stride=stride,
            padding=dilation * (width // 2),
            dilation=dilation,
            bias=False,
        ),
        nn.BatchNorm2d(outgoing),
        nn.ReLU(),
    ]


class Probabilities(nn.Module):
    """A network for the export, with probabilities as outputs instead of logits."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the softmax of the network's logits over the last axis."""
        return torch.softmax(self.network(inputs), dim=-1)
