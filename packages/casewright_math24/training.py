"""The training of the shipped networks: the card reader, and the latent."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from casewright_math24.card_training import train_card_reader
from casewright_math24.decomposition import classes, decomposable_problems
from casewright_math24.latent import FILE, Latent
from casewright_math24.latent_training import train_comparing_latent
from casewright_mcbr.fonts import training_fonts
from casewright_mcbr.layers import unit_rows
from casewright_mcbr.training import write_figures


def train_math24(
    folder: Path, *, seed: int = 0, steps: int = 1600, progress: bool | None = None
) -> dict[str, float]:
    """Train both networks, and write them with their figures.

    The latent learns all 527 puzzles, which are the cases. ``casewright bench math24`` trains
    others to measure latents on held-out puzzles.

    Args:
        folder: For the networks.
        seed: Of both trainings.
        steps: Of the card reader's training.
        progress: Show a progress bar; see ``progress_bar``.

    Returns:
        Shares: the card reader's, see ``card_measures.measure``; and of the latent the share of
            cases
        whose nearest other case has a common class (``latent_nearest_case_same_class``).

    Raises:
        InputError: The folder cannot be written.
        DependencyError: matplotlib, which brings the fonts, is not installed.
    """
    # Missing fonts are refused before a minute of training.
    training_fonts()
    known = [classes(problem) for problem in decomposable_problems()]
    latent = train_comparing_latent(decomposable_problems(), known, seed=seed)
    latent.save(folder / FILE.name)
    cards = train_card_reader(folder / "cards.onnx", seed=seed, steps=steps, progress=progress)
    figures = {
        **{f"cards_{name}": share for name, share in cards.items()},
        "latent_nearest_case_same_class": _nearest_share(latent),
    }
    write_figures(folder, figures)
    return figures


def _nearest_share(latent: Latent) -> float:
    problems = decomposable_problems()
    units = unit_rows(latent.vectors(problems).astype(np.float64))
    likeness = units @ units.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = likeness.argmax(axis=1)
    pairs = zip(problems, nearest, strict=True)
    return float(np.mean([bool(classes(p) & classes(problems[other])) for p, other in pairs]))
