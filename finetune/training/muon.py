"""Muon, for a network that is trained whole: fewer steps to the same loss than AdamW.

Keller Jordan et al. (2024), "Muon: An optimizer for hidden layers in neural networks": the momentum
of a matrix is made orthogonal before it is applied. PyTorch has it too, but computes it in
bfloat16, in which CPUs without instructions for that are very slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Coefficients of the quintic Newton-Schulz iteration, and how often it is done (ibid.).
_QUINTIC, _ITERATIONS = (3.4445, -4.7750, 2.0315), 5
_MOMENTUM = 0.95
#: Learning rate of what is no matrix of a hidden layer, as a share of that of matrices.
OTHERS = 0.2


def muon(network: Any, lr: float, weight_decay: float, beta2: float) -> Any:
    """Return an optimiser: Muon for the matrices of hidden layers, AdamW for all else.

    Args:
        network: What is trained of it requires gradients.
        lr: Of the matrices; embeddings and norms have ``OTHERS`` of it.
        weight_decay: Of the matrices.
        beta2: AdamW's.
    """
    import torch

    class Muon(torch.optim.AdamW):
        """AdamW, with Muon for those groups that say so."""

        @torch.no_grad()
        def step(self, closure: Callable[[], float] | None = None) -> Any:
            """Make one step."""
            matrices = [group for group in self.param_groups if group["muon"]]
            for group in matrices:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        _step(parameter, self.state[parameter], group)
            whole = self.param_groups
            self.param_groups = [group for group in whole if not group["muon"]]
            try:
                return super().step(closure)
            finally:
                self.param_groups = whole

    embedding = network.get_input_embeddings().weight
    head = network.get_output_embeddings().weight
    trained = [p for p in network.parameters() if p.requires_grad]
    hidden = [p for p in trained if p.ndim == 2 and p is not embedding and p is not head]
    chosen = set(map(id, hidden))
    others = [p for p in trained if id(p) not in chosen]
    return Muon(
        [
            {"params": hidden, "muon": True, "lr": lr, "weight_decay": weight_decay},
            {"params": others, "muon": False, "lr": OTHERS * lr, "weight_decay": 0.0},
        ],
        betas=(0.9, beta2),
    )


def _step(parameter: torch.Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    import torch

    gradient = parameter.grad
    assert gradient is not None
    if "momentum" not in state:
        state["momentum"] = torch.zeros_like(parameter)
        # AdamW looks for it in all that is loaded again.
        state["step"] = torch.tensor(0.0)
    momentum = state["momentum"]
    momentum.lerp_(gradient, 1 - _MOMENTUM)
    update = _orthogonal(gradient.lerp(momentum, _MOMENTUM))
    rows, columns = parameter.shape
    parameter.mul_(1 - group["lr"] * group["weight_decay"])
    parameter.add_(update, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)


def _orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Return the nearest orthogonal matrix, roughly: singular values between 0.7 and 1.2."""
    a, b, c = _QUINTIC
    turned = matrix.shape[0] > matrix.shape[1]
    found = matrix.T if turned else matrix
    found = found / (found.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = found @ found.T
        found = a * found + (b * gram + c * (gram @ gram)) @ found
    nearest: torch.Tensor = found.T if turned else found
    return nearest
