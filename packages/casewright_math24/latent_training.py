"""Trains networks that compute latents (vectors), with the paper's loss or a contrastive loss."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright_math24.decomposition import LARGER_FACTORS, Class
from casewright_math24.latent import LatentNetwork, inputs
from casewright_math24.puzzle import Problem
from casewright_mcbr.training import arrays_of, seeded, step

if TYPE_CHECKING:
    from torch import Tensor

#: Number of flags of a problem's classes. Each larger factor has five: one says if the factor is in
#: a class, and one for each of the four numbers says if the number is in a pair of the factor.
FLAG_COUNT = 5 * len(LARGER_FACTORS)
#: The paper's settings; for a range, its middle. ``L2_WEIGHT`` is the weight of an L2 penalty.
EPOCHS, BATCH_SIZE, LEARNING_RATE, L2_WEIGHT, DROPOUT = 500, 64, 0.01, 0.001, 0.1
#: Settings of the contrastive training. ``NOISE`` is the standard deviation of noise on inputs.
STEPS, CONTRASTIVE_RATE, DECAY, CONTRASTIVE_DROPOUT, NOISE = 1000, 3e-3, 1e-2, 0.2, 0.03

#: The classes of each problem.
Labels = Sequence[Collection[Class]]


@dataclass(frozen=True, slots=True)
class ContrastSettings:
    """Settings of the contrastive loss.

    The defaults were chosen on the training puzzles of all published splits. A test puzzle of one
    split is a training puzzle of other splits, so all puzzles influenced the choice. ``bench math24
    --nested`` chooses the settings in each split, without its test puzzles.
    """

    temperature: float = 0.1  # temperature of the softmax over similarities
    class_weight: float = 0.7  # weight of the loss for classes; 1 - class_weight is for factors


def train_paper_network(
    problems: Sequence[Problem], labels: Labels, *, seed: int = 0, epochs: int = EPOCHS
) -> LatentNetwork:
    """Train the paper's network to predict flags of the classes (MCBR-RAG, section 5.1).

    In the paper, the loss on test puzzles controls the learning rate. Here the rate follows a
    cosine schedule, and no test puzzle is used.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import PaperNetwork

    with seeded(seed):
        network = PaperNetwork(FLAG_COUNT, DROPOUT)
        encoded = torch.tensor(np.stack([inputs(problem) for problem in problems]))
        targets = torch.tensor(np.stack([_flags(classes) for classes in labels]))
        steps = epochs * -(-len(problems) // BATCH_SIZE)
        optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, LEARNING_RATE / 100)
        for _ in range(epochs):
            for batch in torch.randperm(len(problems)).split(BATCH_SIZE):
                loss = binary_cross_entropy_with_logits(network(encoded[batch]), targets[batch])
                loss = loss + L2_WEIGHT * network.hidden.weight.square().sum()
                step(loss, optimizer, schedule)
    return LatentNetwork([arrays_of(network.hidden)], f"math24-paper-{seed}", ends_in_relu=True)


def train_contrastive_network(
    problems: Sequence[Problem],
    labels: Labels,
    *,
    seed: int = 0,
    steps: int = STEPS,
    contrast: ContrastSettings = ContrastSettings(),
) -> LatentNetwork:
    """Train a network whose latents are similar for problems with a common class.

    The loss is the supervised contrastive loss (Khosla et al. 2020) for common classes and for
    common larger factors, plus a classification loss for the classes. Each step uses all problems.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from casewright_math24.latent_network import ContrastiveNetwork

    all_classes = sorted(set().union(*labels))
    same_class = _common_element_mask([set(classes) for classes in labels])
    same_factor = _common_element_mask([{larger for larger, *_ in row} for row in labels])
    with seeded(seed):
        network = ContrastiveNetwork(len(all_classes), CONTRASTIVE_DROPOUT)
        encoded = torch.tensor(np.stack([inputs(problem) for problem in problems]))
        targets = torch.tensor([[float(class_ in row) for class_ in all_classes] for row in labels])
        optimizer = torch.optim.AdamW(network.parameters(), CONTRASTIVE_RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            latents, logits = network(encoded + NOISE * torch.randn_like(encoded))
            class_loss = _contrastive_loss(latents, same_class, contrast.temperature)
            factor_loss = _contrastive_loss(latents, same_factor, contrast.temperature)
            loss = contrast.class_weight * class_loss + (1 - contrast.class_weight) * factor_loss
            loss = loss + binary_cross_entropy_with_logits(logits, targets) / 2
            step(loss, optimizer, schedule)
    layers = [arrays_of(network.first), arrays_of(network.latent)]
    return LatentNetwork(layers, f"math24-comparing-{seed}", ends_in_relu=False)


def _contrastive_loss(latents: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Return the supervised contrastive loss; ``positives`` (n, n): which are to be alike."""
    import torch

    diagonal = torch.eye(len(latents), dtype=torch.bool)
    similarities = (latents @ latents.T / temperature).masked_fill(diagonal, -torch.inf)
    log_softmax = similarities.log_softmax(1).masked_fill(diagonal, 0)
    positive_counts = positives.sum(1)
    has_positive = positive_counts > 0
    losses = -(log_softmax * positives).sum(1)[has_positive] / positive_counts[has_positive]
    return losses.mean()


def _common_element_mask(sets: Sequence[set[Any]]) -> Tensor:
    """Return a tensor (n, n): True at i and j ≠ i if the two sets have a common element."""
    import torch

    return torch.tensor(
        [[i != j and bool(a & b) for j, b in enumerate(sets)] for i, a in enumerate(sets)]
    )


def _flags(classes: Collection[Class]) -> NDArray[np.float32]:
    """Return the flags of a problem's classes, as (20,)."""
    flags = np.zeros(FLAG_COUNT, dtype=np.float32)
    for larger, first, second in classes:
        start = 5 * LARGER_FACTORS.index(larger)
        flags[[start, start + 1 + first, start + 1 + second]] = 1
    return flags
