"""Accuracy of a card reader on newly drawn cards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import CardReader
from casewright_math24.cards import COUNT, draw_style, render_card
from casewright_math24.non_cards import LEARNED, UNSEEN, Fonts, Kind, draw_non_card
from casewright_math24.puzzle import LARGEST
from casewright_mcbr.fonts import training_fonts, unseen_fonts

#: Share of learned images without a card that the threshold refuses, and the threshold's bounds.
REFUSED, LEAST, MOST = 0.98, 0.2, 0.9


def measure(
    target: Path, *, seed: int = 0, cards: int = 10_000, plain: int = 2000
) -> dict[str, float]:
    """Return the accuracy of a network on new images.

    Args:
        target: The network's file.
        seed: Random seed of the images; use another one than the training.
        cards: Number of cards in learned fonts, of cards in unseen fonts, and of other images.
        plain: Number of cards in the plain style.

    Returns:
        Shares from 0 to 1. Of cards, the accepted ones with all four numbers read right: ``plain``,
        ``training_fonts``, ``unseen_fonts`` (both turned by up to 15°); and ``cards_refused``, the
        refused ones in unseen fonts. Of images without a card, the refused ones:
        ``non_cards_refused`` for learned kinds in unseen fonts, ``unseen_kinds_refused`` for other
        kinds. Also the ``threshold``.
    """
    reader = CardReader(target)
    rng = np.random.default_rng(seed)
    unseen: Fonts = unseen_fonts()
    plain_right, _ = _read(reader, rng, None, plain)
    learned_right, _ = _read(reader, rng, [None, *training_fonts()], cards)
    unseen_right, unseen_sure = _read(reader, rng, unseen, cards)
    limit = reader.threshold
    return {
        "plain": plain_right,
        "training_fonts": learned_right,
        "unseen_fonts": unseen_right,
        "cards_refused": float((unseen_sure < limit).mean()),
        "non_cards_refused": float((_sure(reader, LEARNED, rng, unseen, cards) < limit).mean()),
        "unseen_kinds_refused": float((_sure(reader, UNSEEN, rng, unseen, cards) < limit).mean()),
        "threshold": limit,
    }


def chosen_threshold(target: Path, *, seed: int = 0, count: int = 3000) -> float:
    """Return the confidence threshold, below which images are refused.

    The threshold is the least value that refuses 98 of 100 images without a card, of learned kinds
    and fonts: cards in unseen fonts have a lower confidence, and should still be read.
    """
    rng = np.random.default_rng(seed)
    sure = _sure(CardReader(target), LEARNED, rng, [None, *training_fonts()], count)
    return float(np.quantile(sure, REFUSED).clip(LEAST, MOST))


def _read(
    reader: CardReader, rng: np.random.Generator, fonts: Fonts | None, count: int
) -> tuple[float, NDArray[np.float32]]:
    """Return the share of new cards that are read right, and the confidence of each card.

    Without fonts, the cards have the plain style.
    """
    numbers = rng.integers(1, LARGEST + 1, (count, COUNT))
    likely = reader.probabilities(
        render_card(row.tolist(), draw_style(rng, fonts) if fonts else None) for row in numbers
    )
    sure = likely.max(axis=2).min(axis=1)
    right = (likely.argmax(axis=2) + 1 == numbers).all(axis=1) & (sure >= reader.threshold)
    return float(right.mean()), sure


def _sure(
    reader: CardReader,
    kinds: Mapping[str, Kind],
    rng: np.random.Generator,
    fonts: Fonts,
    count: int,
) -> NDArray[np.float32]:
    likely = reader.probabilities(draw_non_card(kinds, rng, fonts) for _ in range(count))
    sure: NDArray[np.float32] = likely.max(axis=2).min(axis=1)
    return sure
