"""Measures a card reader on newly drawn images, and chooses its confidence threshold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import CardReader
from casewright_math24.cards import NUMBER_COUNT, random_style, render_card
from casewright_math24.non_cards import TRAINED_KINDS, UNSEEN_KINDS, Draw, Fonts, draw_non_card
from casewright_math24.puzzle import LARGEST
from casewright_mcbr.fonts import training_fonts, unseen_fonts

#: The share of images without a card that the threshold must refuse, and the threshold's bounds.
REFUSED_SHARE, MIN_THRESHOLD, MAX_THRESHOLD = 0.98, 0.2, 0.9


def measure(
    target: Path, *, seed: int = 0, count: int = 10_000, plain_count: int = 2000
) -> dict[str, float]:
    """Return a network's threshold, and the shares of new images that it reads right or refuses.

    Args:
        target: The network's file.
        seed: Random seed of the images; it must differ from the seed of the training.
        count: Number of images for each figure except ``plain``.
        plain_count: Number of cards in the plain style.

    Returns:
        ``plain``, ``training_fonts`` and ``unseen_fonts``: shares of cards that are accepted with
        all numbers right, in the plain style and in random styles with these fonts.
        ``cards_refused``, ``non_cards_refused`` (of ``TRAINED_KINDS``) and
        ``unseen_kinds_refused``: shares of images that are refused; all have unseen fonts.
        ``threshold``: the confidence threshold.
    """
    reader = CardReader(target)
    rng = np.random.default_rng(seed)
    unseen: Fonts = unseen_fonts()
    plain_right, _ = _read_cards(reader, rng, None, plain_count)
    training_right, _ = _read_cards(reader, rng, [None, *training_fonts()], count)
    unseen_right, card_confidences = _read_cards(reader, rng, unseen, count)
    confidences = {
        "cards_refused": card_confidences,
        "non_cards_refused": _non_card_confidences(reader, TRAINED_KINDS, rng, unseen, count),
        "unseen_kinds_refused": _non_card_confidences(reader, UNSEEN_KINDS, rng, unseen, count),
    }
    return {
        "plain": plain_right,
        "training_fonts": training_right,
        "unseen_fonts": unseen_right,
        **{name: float((group < reader.threshold).mean()) for name, group in confidences.items()},
        "threshold": reader.threshold,
    }


def choose_threshold(target: Path, *, seed: int = 0, count: int = 3000) -> float:
    """Return the lowest confidence threshold that refuses 98 % of the images without a card.

    The images are of the trained kinds, in training fonts. The reader has less confidence in cards
    in unseen fonts, so a higher threshold would refuse more of these cards.
    """
    rng, fonts = np.random.default_rng(seed), [None, *training_fonts()]
    confidences = _non_card_confidences(CardReader(target), TRAINED_KINDS, rng, fonts, count)
    return float(np.quantile(confidences, REFUSED_SHARE).clip(MIN_THRESHOLD, MAX_THRESHOLD))


def _read_cards(
    reader: CardReader, rng: np.random.Generator, fonts: Fonts | None, count: int
) -> tuple[float, NDArray[np.float32]]:
    """Return the share of new cards that are accepted and read right, and all cards' confidences.

    Without fonts, the cards have the plain style.
    """
    numbers = rng.integers(1, LARGEST + 1, (count, NUMBER_COUNT))
    predicted = reader.probabilities(
        render_card(row.tolist(), random_style(rng, fonts) if fonts else None) for row in numbers
    )
    confidences = predicted.max(axis=2).min(axis=1)
    is_right = (predicted.argmax(axis=2) + 1 == numbers).all(axis=1)
    return float((is_right & (confidences >= reader.threshold)).mean()), confidences


def _non_card_confidences(
    reader: CardReader,
    kinds: Mapping[str, Draw],
    rng: np.random.Generator,
    fonts: Fonts,
    count: int,
) -> NDArray[np.float32]:
    """Return the reader's confidence in each of ``count`` new images without a card."""
    predicted = reader.probabilities(draw_non_card(kinds, rng, fonts) for _ in range(count))
    return np.asarray(predicted.max(axis=2).min(axis=1))
