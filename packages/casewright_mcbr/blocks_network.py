"""Building blocks of the convolutional torch networks that read pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def convolution(
    incoming: int, outgoing: int, width: int, *, stride: int = 1, dilation: int = 1
) -> list[nn.Module]:
    """Return three layers: a ``width`` × ``width`` convolution, batch normalisation and ReLU.

    ``incoming`` and ``outgoing`` are the numbers of channels before and after the convolution.
    """
    padding = dilation * (width // 2)
    layer = nn.Conv2d(incoming, outgoing, width, stride, padding, dilation, bias=False)
    return [layer, nn.BatchNorm2d(outgoing), nn.ReLU()]


class Probabilities(nn.Module):
    """A network that turns another network's logits into probabilities, for the ONNX export."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the softmax of the network's logits over the last axis."""
        return torch.softmax(self.network(inputs), dim=-1)
