"""Training batches of the card reader.

Drawing a card takes milliseconds, too long for a training step. So cells are drawn once, as a pool,
and a batch combines them to cards. Torch then turns, stretches, thickens and blurs the cards and
adds noise. A batch also has cards that were drawn whole, and images without a card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_reader import INPUT_SIDE, card_input
from casewright_math24.cards import COUNT, CardStyle, draw_style, render_card, render_texts
from casewright_math24.non_cards import TRAINED, Fonts, draw_non_card, strange_text
from casewright_math24.puzzle import LARGEST

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers of images in a batch: cards combined from cells, whole cards, images without a card.
COMBINED, WHOLE, OTHER = 36, 10, 18
#: Sizes of the pools: styles of cells, whole cards, images without a card.
STYLES, CARDS, NON_CARDS = 480, 5000, 5000
#: For each style, number of cells with texts that are not numbers from 1 to 13.
STRANGE = 6
#: The class of a cell without a number from 1 to 13.
NONE = -1


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools of images for batches, as grey levels from 0 to 255."""

    #: Cells (styles, 1 + 13 + STRANGE, 45, 45); the first cell of a style is empty.
    cells: NDArray[np.uint8]
    cards: NDArray[np.uint8]  # whole cards (n, 90, 90)
    numbers: NDArray[np.int64]  # the numbers on the whole cards, minus one (n, 4)
    others: NDArray[np.uint8]  # images without a card (m, 90, 90)


def draw_cards(
    rng: np.random.Generator, fonts: Fonts, count: int, *, plain: float = 0.0
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw cards in random styles, a share ``plain`` of them in the plain style.

    Return grey levels (count, 90, 90), and the numbers minus one (count, 4).
    """
    numbers = rng.integers(1, LARGEST + 1, (count, COUNT))
    images = np.empty((count, INPUT_SIDE, INPUT_SIDE), dtype=np.uint8)
    for row in range(count):
        style = draw_style(rng, fonts) if rng.random() >= plain else None
        images[row] = _bytes(card_input(render_card(numbers[row].tolist(), style)))
    return images, numbers - 1


def draw_pools(rng: np.random.Generator, fonts: Fonts) -> Pools:
    """Draw the pools, which takes about a minute."""
    cards, numbers = draw_cards(rng, fonts, CARDS, plain=0.1)
    others = np.stack(
        [_bytes(card_input(draw_non_card(TRAINED, rng, fonts))) for _ in range(NON_CARDS)]
    )
    return Pools(np.stack([_cells(rng, fonts) for _ in range(STYLES)]), cards, numbers, others)


def _cells(rng: np.random.Generator, fonts: Fonts) -> NDArray[np.uint8]:
    """Return the cells of a random style, upright and clean, from five cards of four cells."""
    texts = ["", *map(str, range(1, LARGEST + 1))]
    texts += [strange_text(rng) for _ in range(STRANGE)]
    base = draw_style(rng, fonts, rotation=0)
    cells: list[NDArray[np.uint8]] = []
    for start in range(0, len(texts), COUNT):
        # Rotation, ink and noise vary later, in batches; only the offsets vary between cells.
        offsets = draw_style(rng, fonts).offsets
        style = CardStyle(font=base.font, size=base.size, lines=base.lines, offsets=offsets)
        card = _bytes(card_input(render_texts(texts[start : start + COUNT], style)))
        half = INPUT_SIDE // 2
        cells += [card[y : y + half, x : x + half] for y in (0, half) for x in (0, half)]
    return np.stack(cells)


def _bytes(grey: NDArray[np.float32]) -> NDArray[np.uint8]:
    return (grey * 255).round().astype(np.uint8)


def draw_batch(pools: Pools, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return random images (n, 90, 90) of grey levels from 0 to 1, and their numbers (n, 4).

    A number is that of a cell minus one, or ``NONE``.
    """
    import torch

    contents = rng.integers(1, LARGEST + 1, (COMBINED, COUNT))
    for row in np.flatnonzero(rng.random(COMBINED) < 0.2):
        replaced = rng.choice(COUNT, size=int(rng.integers(1, COUNT)), replace=False)
        # Half of these cards have empty cells, the others strange texts.
        strange = rng.integers(LARGEST + 1, LARGEST + 1 + STRANGE, len(replaced))
        contents[row, replaced] = strange if rng.random() < 0.5 else 0
    cells = pools.cells[rng.integers(len(pools.cells), size=(COMBINED, 1)), contents]
    half = INPUT_SIDE // 2
    combined = cells.reshape(COMBINED, 2, 2, half, half).transpose(0, 1, 3, 2, 4)
    combined = combined.reshape(COMBINED, INPUT_SIDE, INPUT_SIDE)
    numbers = np.where((contents >= 1) & (contents <= LARGEST), contents - 1, NONE)

    cards = rng.integers(len(pools.cards), size=WHOLE)
    others = pools.others[rng.integers(len(pools.others), size=OTHER)]
    # Images without a card may be mirrored; cards may not, because their numbers would change.
    others = others if rng.random() < 0.5 else np.ascontiguousarray(others[:, :, ::-1])
    # Augmentation changes margins. Whole cards and half of the others are not augmented, so that
    # the margins do not reveal whether an image shows a card.
    augmented = np.concatenate([combined, others[: OTHER // 2]])
    unchanged = np.concatenate([others[OTHER // 2 :], pools.cards[cards]])
    images = torch.cat(
        [
            _augment(torch.from_numpy(augmented).float() / 255, rng),
            torch.from_numpy(unchanged).float() / 255,
        ]
    )
    labels = np.concatenate([numbers, np.full((OTHER, COUNT), NONE), pools.numbers[cards]])
    return images, torch.from_numpy(labels)


def _augment(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Return images (n, 90, 90), turned, stretched, thickened and blurred at random, with noise."""
    import torch
    from torch.nn import functional

    count = len(images)

    def uniform(low: float, high: float) -> NDArray[np.float64]:
        return rng.uniform(low, high, count)

    angle, slant = np.deg2rad(uniform(-17, 17)), uniform(-0.12, 0.12)
    wide, high = uniform(0.9, 1.18), uniform(0.9, 1.18)
    cosine, sine = np.cos(angle), np.sin(angle)
    rows = np.stack(
        [
            np.stack([wide * cosine, -high * sine + slant, uniform(-0.05, 0.05)], axis=1),
            np.stack([wide * sine, high * cosine, uniform(-0.05, 0.05)], axis=1),
        ],
        axis=1,
    )
    grid = functional.affine_grid(
        torch.from_numpy(rows).float(), [count, 1, INPUT_SIDE, INPUT_SIDE], align_corners=False
    )
    # Pixels from outside the image are white, like the paper of these cards.
    out = 1 - functional.grid_sample(1 - images.unsqueeze(1), grid, align_corners=False)
    share = torch.from_numpy(np.clip(uniform(-0.5, 0.8), 0, None)).float().view(-1, 1, 1, 1)
    if rng.random() < 0.5:
        thinner = functional.max_pool2d(out, 3, 1, 1)
        out = out + share * 0.7 * (thinner - out)
    else:
        thicker = -functional.max_pool2d(-out, 3, 1, 1)
        out = out + share * (thicker - out)
    if rng.random() < 0.3:
        side = int(rng.integers(36, INPUT_SIDE))
        out = functional.interpolate(out, (side, side), mode="bilinear", antialias=True)
        out = functional.interpolate(out, (INPUT_SIDE, INPUT_SIDE), mode="bilinear")
    strength = np.clip(uniform(-0.08, 0.16), 0, None) * rng.uniform(0, 1, count)
    noise = torch.from_numpy(rng.standard_normal(out.shape, dtype=np.float32))
    return (out + torch.from_numpy(strength).float().view(-1, 1, 1, 1) * noise).squeeze(1)
