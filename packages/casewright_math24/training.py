"""Trains the two shipped networks: the card reader's, and the network that computes latents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.stores.encoders.onnx_export import write_metadata
from casewright_math24.card_batches import NONE, draw_batch, draw_pools
from casewright_math24.card_measures import choose_threshold, measure
from casewright_math24.card_reader import INPUT_SIDE, THRESHOLD_KEY
from casewright_math24.decomposition import classes, decomposable_problems
from casewright_math24.latent import LATENT_WEIGHTS, LatentNetwork
from casewright_math24.latent_training import train_contrastive_network
from casewright_mcbr.fonts import training_fonts
from casewright_mcbr.layers import unit_rows
from casewright_mcbr.training import export_batched, train_one_cycle, write_figures

if TYPE_CHECKING:
    from torch import Tensor

    from casewright_math24.card_network import CardNetwork

#: Maximum learning rate of the card reader.
MAX_RATE = 4e-3
#: Weight of the loss on cells without a number, as in outlier exposure (Hendrycks et al. 2019).
OUTLIER_WEIGHT = 0.5


def train_math24(
    folder: Path, *, seed: int = 0, steps: int = 1600, progress: bool | None = None
) -> dict[str, float]:
    """Train both networks, write them with their figures to a folder, and return the figures.

    The latent network is trained on all 527 puzzles, which are the cases. ``casewright bench
    math24`` trains other networks to measure them on held-out puzzles.

    Args:
        steps: Training steps of the card reader, of 64 images each; one core does 4 steps a second.
        progress: Whether to show a progress bar; see ``progress_bar``.

    Returns:
        ``latent_nearest_case_same_class``: the share of cases that have a class in common with the
        nearest other case. ``cards_…``: the figures of ``card_measures.measure``.

    Raises:
        DependencyError: matplotlib, which has the fonts, is not installed.
    """
    training_fonts()  # raises ``DependencyError`` before a minute of training, not after it
    labels = [classes(problem) for problem in decomposable_problems()]
    network = train_contrastive_network(decomposable_problems(), labels, seed=seed)
    network.save(folder / LATENT_WEIGHTS.name)
    card_figures = _train_card_reader(folder / "cards.onnx", seed, steps, progress)
    figures = {
        **{f"cards_{name}": value for name, value in card_figures.items()},
        "latent_nearest_case_same_class": _same_class_share(network),
    }
    write_figures(folder, figures)
    return figures


def _same_class_share(network: LatentNetwork) -> float:
    """Return the share of cases that have a class in common with the nearest other case."""
    problems = decomposable_problems()
    units = unit_rows(network.vectors(problems).astype(np.float64))
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    pairs = zip(problems, cosines.argmax(axis=1), strict=True)
    return float(np.mean([bool(classes(p) & classes(problems[nearest])) for p, nearest in pairs]))


def _train_card_reader(
    target: Path, seed: int, steps: int, progress: bool | None
) -> dict[str, float]:
    """Train and write a network that reads cards; return the figures of ``measure``.

    The fonts are ``training_fonts`` and Pillow's default font. The same seed and number of steps
    give the same network on one machine.
    """
    from torch.nn import functional

    from casewright_math24.card_network import CardNetwork
    from casewright_mcbr.blocks_network import Probabilities

    rng = np.random.default_rng(seed)
    pools = draw_pools(rng, [None, *training_fonts()])

    def loss(network: CardNetwork) -> Tensor:
        images, labels = draw_batch(pools, rng)
        logits, is_none = network(images), labels == NONE
        number_loss = functional.cross_entropy(logits[~is_none], labels[~is_none])
        # For cells without a number, the loss is cross-entropy with the uniform distribution.
        mean_log = functional.log_softmax(logits[is_none], dim=-1).mean()
        return number_loss - OUTLIER_WEIGHT * mean_log

    label = "Training the card reader"
    network = train_one_cycle(CardNetwork, loss, MAX_RATE, steps, seed, label, progress)
    shape = (INPUT_SIDE, INPUT_SIDE)
    export_batched(Probabilities(network), shape, target, "images", ["probabilities"])
    # The threshold is chosen on the fonts and kinds of the training images, not of the test images.
    write_metadata(target, {THRESHOLD_KEY: choose_threshold(target, seed=seed + 1)})
    return measure(target, seed=seed + 2)
