"""Accuracy of a card reader on newly drawn cards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import CardReader
from casewright_math24.cards import COUNT, draw_style, render_card
from casewright_math24.non_cards import TRAINED, UNSEEN, Fonts, Kind, draw_non_card
from casewright_math24.puzzle import LARGEST
from casewright_mcbr.fonts import training_fonts, unseen_fonts

#: Share of images without a card, of trained kinds, that the threshold refuses; its bounds.
REFUSED, MIN_THRESHOLD, MAX_THRESHOLD = 0.98, 0.2, 0.9


def measure(
    target: Path, *, seed: int = 0, cards: int = 10_000, plain: int = 2000
) -> dict[str, float]:
    """Return the accuracy of a network on new images.

    Args:
        seed: Random seed of the images; it must differ from that of the training.
        cards: Number of cards in training fonts, of cards in unseen fonts, and of other images.
        plain: Number of cards in the plain style.

    Returns:
        Shares of cards that are accepted with all four numbers read right: ``plain``,
        ``training_fonts`` and ``unseen_fonts`` (the latter two turned by up to 15°). Shares that
        are refused: ``cards_refused`` of cards in unseen fonts, ``non_cards_refused`` of images
        without a card, of trained kinds in unseen fonts, ``unseen_kinds_refused`` of other kinds.
        And the ``threshold``.
    """
    reader = CardReader(target)
    rng = np.random.default_rng(seed)
    unseen: Fonts = unseen_fonts()
    plain_right, _ = _read(reader, rng, None, plain)
    training_right, _ = _read(reader, rng, [None, *training_fonts()], cards)
    unseen_right, card_confidence = _read(reader, rng, unseen, cards)
    trained_kinds, unseen_kinds = (
        _confidence(reader, kinds, rng, unseen, cards) for kinds in (TRAINED, UNSEEN)
    )
    return {
        "plain": plain_right,
        "training_fonts": training_right,
        "unseen_fonts": unseen_right,
        "cards_refused": float((card_confidence < reader.threshold).mean()),
        "non_cards_refused": float((trained_kinds < reader.threshold).mean()),
        "unseen_kinds_refused": float((unseen_kinds < reader.threshold).mean()),
        "threshold": reader.threshold,
    }


def choose_threshold(target: Path, *, seed: int = 0, count: int = 3000) -> float:
    """Return the lowest confidence threshold that refuses 98 % of images without a card.

    The images are of trained kinds and fonts. A higher threshold would refuse cards in unseen
    fonts, which have a lower confidence.
    """
    rng = np.random.default_rng(seed)
    confidence = _confidence(CardReader(target), TRAINED, rng, [None, *training_fonts()], count)
    return float(np.quantile(confidence, REFUSED).clip(MIN_THRESHOLD, MAX_THRESHOLD))


def _read(
    reader: CardReader, rng: np.random.Generator, fonts: Fonts | None, count: int
) -> tuple[float, NDArray[np.float32]]:
    """Return the share of new cards that are read right, and the confidence in each card.

    Without fonts, the cards have the plain style.
    """
    numbers = rng.integers(1, LARGEST + 1, (count, COUNT))
    predicted = reader.probabilities(
        render_card(row.tolist(), draw_style(rng, fonts) if fonts else None) for row in numbers
    )
    confidence = predicted.max(axis=2).min(axis=1)
    right = (predicted.argmax(axis=2) + 1 == numbers).all(axis=1)
    return float((right & (confidence >= reader.threshold)).mean()), confidence


def _confidence(
    reader: CardReader,
    kinds: Mapping[str, Kind],
    rng: np.random.Generator,
    fonts: Fonts,
    count: int,
) -> NDArray[np.float32]:
    """Return the reader's confidence in each of ``count`` images without a card."""
    predicted = reader.probabilities(draw_non_card(kinds, rng, fonts) for _ in range(count))
    confidence: NDArray[np.float32] = predicted.max(axis=2).min(axis=1)
    return confidence
