"""Training batches of the card reader.

Drawing a card takes milliseconds, too long for a training step. So a pool of cells (quarters of
cards) is drawn once. Each batch combines cells to cards; torch rotates, stretches and blurs these
cards, and varies their strokes. A batch also has whole cards, and images without a card: non-cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import INPUT_SIDE, card_input
from casewright_math24.cards import NUMBER_COUNT, CardStyle, random_style, render_card, render_texts
from casewright_math24.non_cards import TRAINED_KINDS, Fonts, draw_non_card, strange_text
from casewright_math24.puzzle import LARGEST

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor

#: Numbers of images in a batch: cards combined of cells, whole cards, and non-cards.
BATCH_COMBINED, BATCH_WHOLE, BATCH_NON_CARDS = 36, 10, 18
#: Sizes of the pools: styles of cells, whole cards, and non-cards.
STYLE_COUNT, CARD_COUNT, NON_CARD_COUNT = 480, 5000, 5000
#: Number of cells with a ``strange_text`` in each style.
STRANGE_COUNT = 6
#: Side of a cell in the network's input, in pixels.
INPUT_CELL = INPUT_SIDE // 2
#: The class of a cell without a number from 1 to 13.
NONE = -1


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools of images for batches, in grey levels from 0 to 255."""

    #: For each style, an empty cell, 13 numbers, and strange texts: (styles, 1 + 13 + 6, 45, 45).
    cells: NDArray[np.uint8]
    cards: NDArray[np.uint8]  # whole cards (n, 90, 90)
    labels: NDArray[np.int64]  # the labels of the whole cards' cells (n, 4); see draw_batch
    non_cards: NDArray[np.uint8]  # (m, 90, 90)


def draw_pools(rng: np.random.Generator, fonts: Fonts) -> Pools:
    """Draw new pools in about a minute; a tenth of the whole cards has the plain style."""
    numbers = rng.integers(1, LARGEST + 1, (CARD_COUNT, NUMBER_COUNT))
    cards = [
        _input_bytes(render_card(row, random_style(rng, fonts) if rng.random() >= 0.1 else None))
        for row in numbers.tolist()
    ]
    non_cards = [
        _input_bytes(draw_non_card(TRAINED_KINDS, rng, fonts)) for _ in range(NON_CARD_COUNT)
    ]
    cells = [_cells(rng, fonts) for _ in range(STYLE_COUNT)]
    return Pools(np.stack(cells), np.stack(cards), numbers - 1, np.stack(non_cards))


def _cells(rng: np.random.Generator, fonts: Fonts) -> NDArray[np.uint8]:
    """Return the cells of a random style, upright and without noise, from five drawn cards."""
    texts = ["", *map(str, range(1, LARGEST + 1))]
    texts += [strange_text(rng) for _ in range(STRANGE_COUNT)]
    base = random_style(rng, fonts, rotation=0)
    cells: list[NDArray[np.uint8]] = []
    for start in range(0, len(texts), NUMBER_COUNT):
        # Batches vary rotation, strokes and noise, so only the offsets differ between cells here.
        offsets = random_style(rng, fonts).offsets
        style = CardStyle(font=base.font, size=base.size, lines=base.lines, offsets=offsets)
        card = _input_bytes(render_texts(texts[start : start + NUMBER_COUNT], style))
        cells += [
            card[y : y + INPUT_CELL, x : x + INPUT_CELL]
            for y in (0, INPUT_CELL)
            for x in (0, INPUT_CELL)
        ]
    return np.stack(cells)


def _input_bytes(image: Image.Image) -> NDArray[np.uint8]:
    """Return the network's input for an image, in grey levels from 0 to 255, as (90, 90)."""
    return (card_input(image) * 255).round().astype(np.uint8)


def draw_batch(pools: Pools, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return random images (n, 90, 90) of grey levels from 0 to 1, and labels of cells (n, 4).

    A label is the cell's number minus one, or ``NONE``.
    """
    import torch

    # Indices into the cells of a style; cells 1 to 13 have the numbers 1 to 13.
    contents = rng.integers(1, LARGEST + 1, (BATCH_COMBINED, NUMBER_COUNT))
    for card in np.flatnonzero(rng.random(BATCH_COMBINED) < 0.2):
        replaced = rng.choice(NUMBER_COUNT, size=int(rng.integers(1, NUMBER_COUNT)), replace=False)
        # Half of these cards have empty cells, and the others have strange texts.
        strange = rng.integers(LARGEST + 1, LARGEST + 1 + STRANGE_COUNT, len(replaced))
        contents[card, replaced] = strange if rng.random() < 0.5 else 0
    cells = pools.cells[rng.integers(len(pools.cells), size=(BATCH_COMBINED, 1)), contents]
    combined = cells.reshape(BATCH_COMBINED, 2, 2, INPUT_CELL, INPUT_CELL).transpose(0, 1, 3, 2, 4)
    combined = combined.reshape(BATCH_COMBINED, INPUT_SIDE, INPUT_SIDE)
    combined_labels = np.where((contents >= 1) & (contents <= LARGEST), contents - 1, NONE)

    card_indices = rng.integers(len(pools.cards), size=BATCH_WHOLE)
    non_cards = pools.non_cards[rng.integers(len(pools.non_cards), size=BATCH_NON_CARDS)]
    # Only non-cards are mirrored: mirrored digits are no digits.
    if rng.random() >= 0.5:
        non_cards = np.ascontiguousarray(non_cards[:, :, ::-1])
    # Augmentation changes margins. Whole cards and half of the non-cards are not augmented, so that
    # margins do not show whether an image is a card.
    images = np.concatenate([combined, non_cards, pools.cards[card_indices]])
    non_card_labels = np.full((BATCH_NON_CARDS, NUMBER_COUNT), NONE)
    labels = np.concatenate([combined_labels, non_card_labels, pools.labels[card_indices]])
    inputs = torch.from_numpy(images).float() / 255
    augmented_count = BATCH_COMBINED + BATCH_NON_CARDS // 2
    augmented = _augment(inputs[:augmented_count], rng)
    return torch.cat([augmented, inputs[augmented_count:]]), torch.from_numpy(labels)


def _augment(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Rotate, stretch and blur images (n, 90, 90) at random, vary the strokes, and add noise."""
    import torch
    from torch.nn import functional

    count = len(images)

    def uniform(low: float, high: float) -> NDArray[np.float64]:
        return rng.uniform(low, high, count)

    def per_image(values: NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(values).float().view(-1, 1, 1, 1)

    angle, slant = np.deg2rad(uniform(-17, 17)), uniform(-0.12, 0.12)
    width, height = uniform(0.9, 1.18), uniform(0.9, 1.18)
    cosine, sine = np.cos(angle), np.sin(angle)
    matrices = [
        [width * cosine, -height * sine + slant, uniform(-0.05, 0.05)],
        [width * sine, height * cosine, uniform(-0.05, 0.05)],
    ]
    affine = torch.from_numpy(np.array(matrices).transpose(2, 0, 1)).float()
    size = [count, 1, INPUT_SIDE, INPUT_SIDE]
    grid = functional.affine_grid(affine, size, align_corners=False)
    # Pixels from outside the image are white, like the background of combined cards.
    result = 1 - functional.grid_sample(1 - images.unsqueeze(1), grid, align_corners=False)
    strength = per_image(np.clip(uniform(-0.5, 0.8), 0, None))
    if rng.random() < 0.5:
        thinner = functional.max_pool2d(result, 3, 1, 1)
        result = result + strength * 0.7 * (thinner - result)
    else:
        thicker = -functional.max_pool2d(-result, 3, 1, 1)
        result = result + strength * (thicker - result)
    if rng.random() < 0.3:
        side = int(rng.integers(36, INPUT_SIDE))
        result = functional.interpolate(result, (side, side), mode="bilinear", antialias=True)
        result = functional.interpolate(result, (INPUT_SIDE, INPUT_SIDE), mode="bilinear")
    deviation = np.clip(uniform(-0.08, 0.16), 0, None) * rng.uniform(0, 1, count)
    noise = torch.from_numpy(rng.standard_normal(result.shape, dtype=np.float32))
    return (result + per_image(deviation) * noise).squeeze(1)
