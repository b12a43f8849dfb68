"""What puzzles are compared by: the counts, the two latents, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from casewright.bench.math24.data import Puzzles
from casewright.bench.math24.retrieval import Labels, Represent
from casewright.domains.math24.counts import counts
from casewright.domains.math24.decomposition import CATEGORIES, PAIRS
from casewright.domains.math24.latent_training import train_comparing_latent, train_paper_latent

FEATURES, PAPER, COMPARING = "features", "latent, the paper's network", "latent, by comparison"
SHUFFLED = "control: latent, by comparison, labels shuffled"
RANDOM = "control: random numbers"
SOLVER = "for comparison: a solver's classes, which say it all"

Vectors = NDArray[np.float32]


def representations(puzzles: Puzzles) -> dict[str, Represent]:
    """Return each way to represent puzzles by its name; a run is trained once and then kept."""
    problems = puzzles.problems

    def of_counts(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        return np.stack([counts(problem) for problem in problems])

    def paper(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        known = [problems[place] for place in places]
        return train_paper_latent(known, labels, seed=run).vectors(problems)

    def comparing(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        known = [problems[place] for place in places]
        return train_comparing_latent(known, labels, seed=run).vectors(problems)

    def shuffled(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        order = np.random.default_rng(run).permutation(len(labels))
        return comparing(places, [labels[place] for place in order], run)

    def random(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        drawn = np.random.default_rng(run).standard_normal((len(problems), 64))
        return drawn.astype(np.float32)

    def solver(places: Sequence[int], labels: Labels, run: int) -> Vectors:
        known = [(larger, *pair) for larger in CATEGORIES for pair in PAIRS]
        rows = [[float(one in own) for one in known] for own in puzzles.classes]
        return np.array(rows, dtype=np.float32)

    ways = {FEATURES: of_counts, PAPER: paper, COMPARING: comparing, SHUFFLED: shuffled}
    return {name: _kept(way) for name, way in {**ways, RANDOM: random, SOLVER: solver}.items()}


def _kept(way: Represent) -> Represent:
    """Return a way that trains for each run once: several figures are made of it."""

    @cache
    def made(places: tuple[int, ...], labels: Labels, run: int) -> Vectors:
        return way(places, labels, run)

    return lambda places, labels, run: made(tuple(places), tuple(labels), run)
