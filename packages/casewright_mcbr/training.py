"""Functions for training and export that Math-24 and backgammon share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from casewright.stores.encoders.onnx_export import export_onnx, write_metadata
from casewright.stores.progress import progress_bar
from casewright_mcbr.layers import Layer

if TYPE_CHECKING:
    from torch import Tensor, nn

Network = TypeVar("Network", bound="nn.Module")
#: Name of the file with a training's figures, beside the networks that were trained.
FIGURES_FILE = "figures.json"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch for a ``with`` block, and restore its random state afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def step(loss: Tensor, optimizer: Any, schedule: Any) -> None:
    """Take a gradient step and a step of the learning-rate schedule."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()


def arrays_of(layer: nn.Linear) -> Layer:
    """Return the weights (out, in) and biases (out) of a dense layer."""
    return layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()


def train_one_cycle(
    new_network: Callable[[], Network],
    loss: Callable[[Network], Tensor],
    rate: float,
    steps: int,
    seed: int,
    label: str,
    progress: bool | None,
) -> Network:
    """Return a trained network, in evaluation mode.

    The learning rate follows the one-cycle schedule (Smith and Topin 2019).

    Args:
        new_network: Returns the convolutional network to train.
        loss: Draws a batch, and returns the network's loss on it.
        rate: Maximum learning rate.
        steps: Number of gradient steps.
        seed: Random seed of the weights.
        label: The label of the progress bar.
        progress: Whether to show a progress bar; see ``progress_bar``.
    """
    import torch

    torch.manual_seed(seed)
    network = new_network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps + 1, pct_start=0.15
    )
    network.train()
    with progress_bar(label, steps, show=progress) as advance:
        for _ in range(steps):
            optimizer.zero_grad()
            loss(network).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            advance(1)
    trained: Network = network.eval()
    return trained


def export_batched(
    network: nn.Module, shape: Sequence[int], target: Path, input_name: str, outputs: Sequence[str]
) -> None:
    """Write a network as an ONNX file that accepts any batch size.

    Args:
        shape: The shape of one example, without the batch dimension.
        input_name: The name of the network's only input.
        outputs: The names of the network's outputs.
    """
    import torch

    export_onnx(
        network.eval(),
        [torch.rand(2, *shape)],
        target,
        inputs=[input_name],
        outputs=list(outputs),
        dynamic={input_name: {0: torch.export.Dim("n")}},
    )
    write_metadata(target, {})  # removes the source paths of this machine


def write_figures(folder: Path, figures: Mapping[str, float]) -> None:
    """Write the figures of a training to the folder of its networks."""
    (folder / FIGURES_FILE).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def read_figures(folder: Path) -> dict[str, float]:
    """Return the figures that ``write_figures`` wrote."""
    return dict(json.loads((folder / FIGURES_FILE).read_text(encoding="utf-8")))
