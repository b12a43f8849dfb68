"""Training of the two networks that ship: the reader of cards, and the latent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from casewright_mcbr.fonts import training_fonts
from casewright_math24.card_training import train_card_reader
from casewright_math24.decomposition import classes, decomposable_problems
from casewright_math24.latent import FILE, Latent
from casewright_math24.latent_training import train_comparing_latent

#: Beside the weights: what their training printed.
FIGURES = "figures.json"
#: How far a training may be from these on another machine, whose sums round otherwise.
TOLERANCE = 0.02


def train_math24(
    folder: Path, *, seed: int = 0, steps: int = 1600, progress: bool | None = None
) -> dict[str, float]:
    """Train both networks, and write them with their figures.

    The latent that ships has learned all 527 puzzles, which are its cases: what it does on puzzles
    that it never saw is measured by ``casewright bench math24``, which trains others.

    Args:
        folder: Where they go.
        seed: Of both trainings.
        steps: Of the card reader's training.
        progress: Whether a bar is shown; see ``progress_bar``.

    Returns:
        Shares: the card reader's, see ``card_measures.measure``; and for the latent how often the
        nearest other case of a case shares a class (``latent_nearest_case_same_class``).

    Raises:
        InputError: The folder cannot be written.
        DependencyError: matplotlib, which brings the fonts, is not installed.
    """
    # Refused now, where there are no fonts, and not after a minute.
    training_fonts()
    known = [classes(problem) for problem in decomposable_problems()]
    latent = train_comparing_latent(decomposable_problems(), known, seed=seed)
    latent.save(folder / FILE.name)
    cards = train_card_reader(folder / "cards.onnx", seed=seed, steps=steps, progress=progress)
    figures = {
        **{f"cards_{name}": share for name, share in cards.items()},
        "latent_nearest_case_same_class": _nearest_share(latent),
    }
    (folder / FIGURES).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def shipped_figures() -> dict[str, float]:
    """Return what the training of the networks that ship printed."""
    read: dict[str, float] = json.loads((FILE.parent / FIGURES).read_text(encoding="utf-8"))
    return read


def _nearest_share(latent: Latent) -> float:
    problems = decomposable_problems()
    vectors = latent.vectors(problems).astype(np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = units @ units.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = likeness.argmax(axis=1)
    pairs = zip(problems, nearest, strict=True)
    return float(np.mean([bool(classes(p) & classes(problems[other])) for p, other in pairs]))
