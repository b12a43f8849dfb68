"""Training of the latents: as in the paper, but without its test cases; with a contrastive loss."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright_math24.decomposition import CATEGORIES, Class
from casewright_math24.latent import Latent, inputs
from casewright_math24.puzzle import Problem
from casewright_mcbr.training import arrays_of, seeded, step

if TYPE_CHECKING:
    from torch import Tensor

#: Number of flags: each larger factor, and each of the four indices in its pair.
FLAGS = 5 * len(CATEGORIES)
#: The paper's settings; where it gives a range, its middle.
EPOCHS, BATCH, RATE, PENALTY, DROPOUT = 500, 64, 0.01, 0.001, 0.1
#: Settings of the contrastive training.
STEPS, CONTRASTIVE_RATE, DECAY, CONTRASTIVE_DROPOUT = 1000, 3e-3, 1e-2, 0.2
NOISE = 0.03


@dataclass(frozen=True, slots=True)
class Contrast:
    """Settings of the contrastive loss.

    The defaults were chosen on the training cases of all published splits. A test puzzle of one
    split is a training case of others, so it influenced the choice; ``bench math24 --nested``
    chooses the settings within each split.

    Attributes:
        temperature: Temperature of the softmax over similarities.
        same_class: Weight of the loss for common classes; the rest is for common larger factors.
    """

    temperature: float = 0.1
    same_class: float = 0.7


Classes = Sequence[Collection[Class]]


def train_paper_latent(
    problems: Sequence[Problem], classes: Classes, *, seed: int = 0, epochs: int = EPOCHS
) -> Latent:
    """Return the latent of the paper's network, trained to flag classes (MCBR-RAG, section 5.1).

    The paper lowers the learning rate by the loss on its test cases; here, the rate follows a
    cosine schedule, without test cases.

    Args:
        seed: Random seed of weights and order.
        epochs: Passes over the problems.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import PaperNetwork

    with seeded(seed):
        network = PaperNetwork(FLAGS, DROPOUT)
        given, targets = _inputs(problems), torch.tensor(np.stack([_flags(c) for c in classes]))
        steps = epochs * -(-len(problems) // BATCH)
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, RATE / 100)
        for _ in range(epochs):
            for batch in torch.randperm(len(problems)).split(BATCH):
                loss = binary_cross_entropy_with_logits(network(given[batch]), targets[batch])
                loss = loss + PENALTY * network.hidden.weight.square().sum()
                step(loss, optimizer, schedule)
    return Latent([arrays_of(network.hidden)], f"math24-paper-{seed}", last=True)


def train_contrastive_latent(
    problems: Sequence[Problem],
    classes: Classes,
    *,
    seed: int = 0,
    steps: int = STEPS,
    contrast: Contrast = Contrast(),
) -> Latent:
    """Return a latent in which problems with a common class are near (Khosla et al. 2020).

    The loss is the supervised contrastive loss over all problems, for common classes and for common
    larger factors, plus a classification loss for the classes.

    Args:
        seed: Random seed of weights, noise and dropout.
        steps: Gradient steps, each over all problems.
        contrast: Settings of the loss.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import ContrastiveNetwork

    labels = sorted({label for of in classes for label in of})
    same_class = _common([set(of) for of in classes])
    same_factor = _common([{larger for larger, *_ in of} for of in classes])
    with seeded(seed):
        network = ContrastiveNetwork(len(labels), CONTRASTIVE_DROPOUT)
        given = _inputs(problems)
        targets = torch.tensor([[float(label in of) for label in labels] for of in classes])
        optimizer = torch.optim.AdamW(network.parameters(), CONTRASTIVE_RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            latents, logits = network(given + NOISE * torch.randn_like(given))
            by_class = _contrast(latents, same_class, contrast.temperature)
            by_factor = _contrast(latents, same_factor, contrast.temperature)
            loss = contrast.same_class * by_class + (1 - contrast.same_class) * by_factor
            loss = loss + binary_cross_entropy_with_logits(logits, targets) / 2
            step(loss, optimizer, schedule)
    layers = [arrays_of(network.first), arrays_of(network.latent)]
    return Latent(layers, f"math24-comparing-{seed}", last=False)


def _contrast(latents: Tensor, pairs: Tensor, temperature: float) -> Tensor:
    """Return the supervised contrastive loss of latents; ``pairs`` marks positive pairs."""
    import torch

    diagonal = torch.eye(len(latents), dtype=torch.bool)
    similarities = (latents @ latents.T / temperature).masked_fill(diagonal, -torch.inf)
    log_shares = similarities.log_softmax(1).masked_fill(diagonal, 0)
    counts = pairs.sum(1)
    losses = -(log_shares * pairs).sum(1)[counts > 0] / counts[counts > 0]
    return losses.mean()


def _common(sets: Sequence[set[Any]]) -> Tensor:
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
