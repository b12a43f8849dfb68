"""Training of latent networks: as in the paper, and with a contrastive loss."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright_math24.decomposition import CATEGORIES, Class
from casewright_math24.latent import LatentNetwork, inputs
from casewright_math24.puzzle import Problem
from casewright_mcbr.training import arrays_of, seeded, step

if TYPE_CHECKING:
    from torch import Tensor

#: Number of flags: each larger factor, and each of the four indices in its pair.
FLAGS = 5 * len(CATEGORIES)
#: The paper's settings; for a range, its middle.
EPOCHS, BATCH, RATE, PENALTY, DROPOUT = 500, 64, 0.01, 0.001, 0.1
#: Settings of the contrastive training.
STEPS, CONTRASTIVE_RATE, DECAY, CONTRASTIVE_DROPOUT = 1000, 3e-3, 1e-2, 0.2
NOISE = 0.03


@dataclass(frozen=True, slots=True)
class Contrast:
    """Settings of the contrastive loss.

    The defaults were chosen on the training cases of all published splits. A test puzzle of one
    split is a training case of others, so it influenced this choice. ``bench math24 --nested``
    chooses the settings in each split, without its test puzzles.
    """

    temperature: float = 0.1  # temperature of the softmax over similarities
    #: Weight of the loss for common classes; that for common factors has the rest.
    same_class: float = 0.7


Classes = Sequence[Collection[Class]]


def train_paper_network(
    problems: Sequence[Problem], classes: Classes, *, seed: int = 0, epochs: int = EPOCHS
) -> LatentNetwork:
    """Train the paper's network to flag the classes of problems (MCBR-RAG, section 5.1).

    The paper lowers the learning rate by the loss on its test cases. Here the rate follows a cosine
    schedule, and no test case is used.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import PaperNetwork

    with seeded(seed):
        network = PaperNetwork(FLAGS, DROPOUT)
        encoded, targets = _inputs(problems), torch.tensor(np.stack([_flags(c) for c in classes]))
        steps = epochs * -(-len(problems) // BATCH)
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, RATE / 100)
        for _ in range(epochs):
            for batch in torch.randperm(len(problems)).split(BATCH):
                loss = binary_cross_entropy_with_logits(network(encoded[batch]), targets[batch])
                loss = loss + PENALTY * network.hidden.weight.square().sum()
                step(loss, optimizer, schedule)
    return LatentNetwork([arrays_of(network.hidden)], f"math24-paper-{seed}", ends_in_relu=True)


def train_contrastive_network(
    problems: Sequence[Problem],
    classes: Classes,
    *,
    seed: int = 0,
    steps: int = STEPS,
    contrast: Contrast = Contrast(),
) -> LatentNetwork:
    """Train a network in which latents of problems with a common class are near.

    The loss is the supervised contrastive loss (Khosla et al. 2020) for common classes and for
    common larger factors, plus a classification loss for the classes. Each step uses all problems.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import ContrastiveNetwork

    labels = sorted(set().union(*classes))
    same_class = _share_element([set(its) for its in classes])
    same_factor = _share_element([{larger for larger, *_ in its} for its in classes])
    with seeded(seed):
        network = ContrastiveNetwork(len(labels), CONTRASTIVE_DROPOUT)
        encoded = _inputs(problems)
        targets = torch.tensor([[float(label in its) for label in labels] for its in classes])
        optimizer = torch.optim.AdamW(network.parameters(), CONTRASTIVE_RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            latents, logits = network(encoded + NOISE * torch.randn_like(encoded))
            by_class = _contrastive_loss(latents, same_class, contrast.temperature)
            by_factor = _contrastive_loss(latents, same_factor, contrast.temperature)
            loss = contrast.same_class * by_class + (1 - contrast.same_class) * by_factor
            loss = loss + binary_cross_entropy_with_logits(logits, targets) / 2
            step(loss, optimizer, schedule)
    layers = [arrays_of(network.first), arrays_of(network.latent)]
    return LatentNetwork(layers, f"math24-comparing-{seed}", ends_in_relu=False)


def _contrastive_loss(latents: Tensor, pairs: Tensor, temperature: float) -> Tensor:
    """Return the supervised contrastive loss of latents; ``pairs`` is True for positive pairs."""
    import torch

    diagonal = torch.eye(len(latents), dtype=torch.bool)
    similarities = (latents @ latents.T / temperature).masked_fill(diagonal, -torch.inf)
    log_softmax = similarities.log_softmax(1).masked_fill(diagonal, 0)
    counts = pairs.sum(1)
    losses = -(log_softmax * pairs).sum(1)[counts > 0] / counts[counts > 0]
    return losses.mean()


def _share_element(sets: Sequence[set[Any]]) -> Tensor:
    """Return True for pairs of different sets with a common element, tensor (n, n)."""
    import torch

    return torch.tensor(
        [[i != j and bool(a & b) for j, b in enumerate(sets)] for i, a in enumerate(sets)]
    )


def _flags(classes: Collection[Class]) -> NDArray[np.float32]:
    flags = np.zeros(FLAGS, dtype=np.float32)
    for larger, first, second in classes:
        start = 5 * CATEGORIES.index(larger)
        flags[[start, start + 1 + first, start + 1 + second]] = 1
    return flags


def _inputs(problems: Sequence[Problem]) -> Tensor:
    import torch

    return torch.tensor(np.stack([inputs(problem) for problem in problems]))
