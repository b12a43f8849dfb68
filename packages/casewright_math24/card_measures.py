"""Measures the accuracy and chooses the threshold of a card reader, on newly drawn images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import CardReader
from casewright_math24.cards import NUMBER_COUNT, draw_style, render_card
from casewright_math24.non_cards import TRAINED_KINDS, UNSEEN_KINDS, Draw, Fonts, draw_non_card
from casewright_math24.puzzle import LARGEST
from casewright_mcbr.fonts import training_fonts, unseen_fonts

#: The share of images without a card that the threshold must refuse, and the threshold's bounds.
REFUSED_SHARE, MIN_THRESHOLD, MAX_THRESHOLD = 0.98, 0.2, 0.9


def measure(
    target: Path, *, seed: int = 0, cards: int = 10_000, plain: int = 2000
) -> dict[str, float]:
    """Return the accuracy of a network on new images.

    Args:
        target: The network's file.
        seed: Random seed of the images; it must differ from the seed of the training.
        cards: Number of cards in training fonts, of cards in unseen fonts, and of images of each
            group without a card.
        plain: Number of cards in the plain style.

    Returns:
        ``plain``, ``training_fonts`` and ``unseen_fonts``: shares of cards that are accepted with
        all numbers right; the last two are of cards rotated by up to 15°. ``cards_refused``,
        ``non_cards_refused`` (of trained kinds) and ``unseen_kinds_refused``: shares of refused
        images in unseen fonts. ``threshold``: the confidence threshold.
    """
    reader = CardReader(target)
    rng = np.random.default_rng(seed)
    unseen: Fonts = unseen_fonts()
    plain_right, _ = _read_cards(reader, rng, None, plain)
    training_right, _ = _read_cards(reader, rng, [None, *training_fonts()], cards)
    unseen_right, card_confidences = _read_cards(reader, rng, unseen, cards)
    confidences = {
        "cards_refused": card_confidences,
        "non_cards_refused": _non_card_confidences(reader, TRAINED_KINDS, rng, unseen, cards),
        "unseen_kinds_refused": _non_card_confidences(reader, UNSEEN_KINDS, rng, unseen, cards),
    }
    return {
        "plain": plain_right,
        "training_fonts": training_right,
        "unseen_fonts": unseen_right,
        **{name: float((row < reader.threshold).mean()) for name, row in confidences.items()},
        "threshold": reader.threshold,
    }


def choose_threshold(target: Path, *, seed: int = 0, count: int = 3000) -> float:
    """Return the lowest confidence threshold that refuses 98 % of the images without a card.

    The images are of trained kinds and fonts. A higher threshold would refuse more cards in unseen
    fonts, which have a lower confidence.
    """
    rng, fonts = np.random.default_rng(seed), [None, *training_fonts()]
    confidences = _non_card_confidences(CardReader(target), TRAINED_KINDS, rng, fonts, count)
    return float(np.quantile(confidences, REFUSED_SHARE).clip(MIN_THRESHOLD, MAX_THRESHOLD))


def _read_cards(
    reader: CardReader, rng: np.random.Generator, fonts: Fonts | None, count: int
) -> tuple[float, NDArray[np.float32]]:
    """Return the share of new cards that are accepted with the right numbers, and all confidences.

    Without fonts, the cards have the plain style.
    """
    numbers = rng.integers(1, LARGEST + 1, (count, NUMBER_COUNT))
    predicted = reader.probabilities(
        render_card(row.tolist(), draw_style(rng, fonts) if fonts else None) for row in numbers
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
