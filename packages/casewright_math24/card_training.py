"""Training the reader of cards: on one core in minutes, on cards that are drawn as it learns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright_mcbr.fonts import training_fonts
from casewright_math24.card_batches import NONE, deal, draw_pools
from casewright_math24.card_measures import chosen_threshold, measure
from casewright_math24.card_reader import THRESHOLD
from casewright.errors import InputError
from casewright.stores.encoders.onnx_export import export_onnx, remember
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from torch import Tensor

    from casewright_math24.card_network import CardNetwork

#: Greatest learning rate.
RATE = 4e-3
#: Weight of the loss on what is no number (Hendrycks et al. 2019 use 0.5).
EXPOSURE = 0.5


def train_card_reader(
    target: Path, *, seed: int = 0, steps: int = 1600, progress: bool | None = None
) -> dict[str, float]:
    """Train a network that reads cards, and write it as an ONNX file.

    It learns from ``training_fonts`` and Pillow's own font alone. On places of an image that hold
    no number from 1 to 13 it learns to be undecided, so that little confidence tells what is no
    card. The same seed and number of steps give the same network on one machine.

    Args:
        target: The file to write; its folder is made.
        seed: Of weights and images.
        steps: Training steps of 64 images; 4 or 5 a second on one core.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Returns:
        What ``measure`` says of the network.

    Raises:
        InputError: There are fewer than one step, or the target is a folder.
        DependencyError: matplotlib, which brings the fonts, is not installed.
    """
    if steps < 1:
        raise InputError(f"{steps} steps train nothing. Give at least 1; 1600 make a good reader.")
    if target.is_dir():
        raise InputError(f"{target} is a folder. Give the name of a file, such as cards.onnx.")
    network = _trained(seed, steps, progress)
    _export(network, target)
    # Chosen on what was learned: the test's fonts and kinds of images have no say.
    remember(target, {THRESHOLD: chosen_threshold(target, seed=seed + 1)})
    return measure(target, seed=seed + 2)


def _trained(seed: int, steps: int, progress: bool | None) -> CardNetwork:
    import torch

    from casewright_math24.card_network import CardNetwork

    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    network = CardNetwork().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=steps + 1, pct_start=0.15
    )
    pools = draw_pools(rng, [None, *training_fonts()])
    network.train()
    with progress_bar("Training the card reader", steps, show=progress) as advance:
        for _ in range(steps):
            images, wanted = deal(pools, rng)
            loss = _loss(network(images), wanted)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            advance(1)
    network.eval()
    made: CardNetwork = network
    return made


def _loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy with the numbers, and with the uniform distribution where there is none."""
    from torch.nn import functional

    likely = functional.log_softmax(logits, dim=-1)
    none = wanted == NONE
    number = -likely.gather(-1, wanted.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return number[~none].mean() - EXPOSURE * likely[none].mean()


def _export(network: CardNetwork, target: Path) -> None:
    import torch

    from casewright_math24.card_image import INPUT_SIDE
    from casewright_math24.card_network import CardProbabilities

    export_onnx(
        CardProbabilities(network).eval(),
        [torch.rand(2, INPUT_SIDE, INPUT_SIDE)],
        target,
        inputs=["images"],
        outputs=["probabilities"],
        dynamic={"images": {0: torch.export.Dim("n")}},
    )
