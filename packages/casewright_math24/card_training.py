"""The training of the card reader: on one core in minutes, on cards that it draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import InputError
from casewright.stores.encoders.onnx_export import remember
from casewright_math24.card_batches import NONE, deal, draw_pools
from casewright_math24.card_measures import chosen_threshold, measure
from casewright_math24.card_reader import INPUT_SIDE, THRESHOLD
from casewright_mcbr.fonts import training_fonts
from casewright_mcbr.training import export_batched, train_one_cycle

if TYPE_CHECKING:
    from torch import Tensor

    from casewright_math24.card_network import CardNetwork

#: Greatest learning rate.
RATE = 4e-3
#: Weight of the loss on cells without a number (Hendrycks et al. 2019 use 0.5).
EXPOSURE = 0.5


def train_card_reader(
    target: Path, *, seed: int = 0, steps: int = 1600, progress: bool | None = None
) -> dict[str, float]:
    """Train a network that reads cards, and write it as an ONNX file.

    It learns from ``training_fonts`` and Pillow's own font alone. For cells without a number from 1
    to 13 it learns the uniform distribution, so that images without a card have little confidence.
    The same seed and number of steps give the same network on one machine.

    Args:
        target: The file to write; its folder is created.
        seed: Of weights and images.
        steps: Training steps of 64 images; 4 or 5 a second on one core.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Returns:
        The figures of ``measure``.

    Raises:
        InputError: There is less than one step, or the target is a folder.
        DependencyError: matplotlib, which brings the fonts, is not installed.
    """
    from casewright_math24.card_network import CardProbabilities

    if steps < 1:
        raise InputError(f"{steps} steps train nothing. Give at least 1; 1600 make a good reader.")
    if target.is_dir():
        raise InputError(f"{target} is a folder. Give the name of a file, such as cards.onnx.")
    network = _trained(seed, steps, progress)
    exported = CardProbabilities(network)
    export_batched(exported, (INPUT_SIDE, INPUT_SIDE), target, "images", ["probabilities"])
    # Chosen on learned fonts and kinds: those of the test take no part.
    remember(target, {THRESHOLD: chosen_threshold(target, seed=seed + 1)})
    return measure(target, seed=seed + 2)


def _trained(seed: int, steps: int, progress: bool | None) -> CardNetwork:
    import torch

    from casewright_math24.card_network import CardNetwork

    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    network = CardNetwork().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    pools = draw_pools(rng, [None, *training_fonts()])

    def loss() -> Tensor:
        images, wanted = deal(pools, rng)
        return _loss(network(images), wanted)

    train_one_cycle(network, loss, RATE, steps, "Training the card reader", progress)
    trained: CardNetwork = network
    return trained


def _loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the cross-entropy with the numbers; without one, with the uniform distribution."""
    from torch.nn import functional

    likely = functional.log_softmax(logits, dim=-1)
    none = wanted == NONE
    number = -likely.gather(-1, wanted.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return number[~none].mean() - EXPOSURE * likely[none].mean()
