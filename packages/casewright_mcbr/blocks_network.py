"""The building block of the convolutional networks; this module imports torch."""

from __future__ import annotations

from torch import nn


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
