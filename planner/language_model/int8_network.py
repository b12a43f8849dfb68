"""Linear layers with 8-bit weights, for decoding on a CPU.

A decoding step reads every weight once and is bound by memory bandwidth, so that 8 bits halve the
time of 16. Each output channel has its own scale (symmetric, round to nearest); activations keep
their dtype.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

#: Maximal number of rows for which a product with 8-bit weights is faster than with 16-bit ones.
FEW_ROWS = 8


def quantise_linear(network: Any) -> Any:
    """Return the network with 8-bit weights in all linear layers, the output layer included."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and getattr(child, "bias", None) is None:
                setattr(module, name, Int8Linear(child))
    return network


class Int8Linear(nn.Module):
    """Linear layer without bias, (…, K) to (…, N), with 8-bit weights.

    Products with many rows, as of prompts, convert the weights to the network's dtype.
    """

    weight: Tensor
    weight8: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        exact = linear.weight.detach().float()
        scale = (exact.abs().amax(1, keepdim=True) / 127).clamp_min(1e-12)
        rounded = (exact / scale).round_()
        dtype = linear.weight.dtype
        self.register_buffer("weight", (rounded * scale).to(dtype))
        self.register_buffer("weight8", rounded.to(torch.int8))
        self.register_buffer("scale", scale[:, 0].to(dtype))

    def forward(self, states: Tensor) -> Tensor:
        """Return the product."""
        rows = states.reshape(-1, states.shape[-1])
        if len(rows) > FEW_ROWS:
            return functional.linear(states, self.weight)
        product: Tensor = torch._weight_int8pack_mm(rows.contiguous(), self.weight8, self.scale)
        return product.reshape(*states.shape[:-1], -1)
