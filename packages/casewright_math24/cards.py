"""Draws Math-24 cards: four numbers from 1 to 13 in a 2×2 grid.

The plain style is the style of MCBR-RAG (Marom 2024): one font, upright, without noise. Other
styles vary the font, rotation, noise and more. The same numbers and style give the same image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright_math24.puzzle import checked_numbers
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image

#: Width and height of a card, and of each of its four cells, in pixels.
SIDE, CELL = 180, 90
#: Number of numbers on a card.
NUMBER_COUNT = 4


@dataclass(frozen=True, slots=True)
class CardStyle:
    """The style of a card; the defaults are the plain style."""

    font: Path | None = None  # a font file; None for the scalable font that comes with Pillow
    size: float = 0.45  # font size, as a share of a cell's height
    rotation: float = 0.0  # in degrees, counter-clockwise
    noise: float = 0.0  # standard deviation of Gaussian noise, in grey levels of 0 to 255
    blur: float = 0.0  # radius of a Gaussian blur, in pixels
    ink: int = 0  # grey level of the numbers; lighter than the paper on an inverted card
    paper: int = 255  # grey level of the background
    lines: bool = False  # True to draw a border and lines between the cells
    #: Offset of each number from its cell's centre, in pixels to the right and down.
    offsets: tuple[tuple[float, float], ...] = ((0.0, 0.0),) * NUMBER_COUNT
    seed: int = 0  # random seed of the noise


def random_style(
    rng: np.random.Generator, fonts: Sequence[Path | None], *, rotation: float = 15.0
) -> CardStyle:
    """Return a random style: one of the fonts, and a rotation of at most ``rotation`` degrees."""
    ink, paper = 0, 255
    if rng.random() < 0.7:
        ink, paper = int(rng.integers(0, 90)), int(rng.integers(165, 256))
    if rng.random() < 0.15:
        ink, paper = paper, ink
    offsets = rng.uniform(-5, 5, (NUMBER_COUNT, 2)).round(2).tolist()
    return CardStyle(
        font=fonts[int(rng.integers(len(fonts)))] if fonts else None,
        size=float(rng.uniform(0.35, 0.52)),
        rotation=float(rng.uniform(-rotation, rotation)),
        noise=float(rng.uniform(0, 25)) if rng.random() < 0.7 else 0.0,
        blur=float(rng.uniform(0, 1.5)) if rng.random() < 0.5 else 0.0,
        ink=ink,
        paper=paper,
        lines=bool(rng.random() < 0.4),
        offsets=tuple((right, down) for right, down in offsets),
        seed=int(rng.integers(2**31)),
    )


def render_card(numbers: Sequence[int], style: CardStyle | None = None) -> Image.Image:
    """Return the image of a card: grey (mode "L"), 180×180 pixels, by default in the plain style.

    The numbers are in the order upper left, upper right, lower left, lower right.

    Raises:
        InputError: The numbers are not four integers from 1 to 13, or the font cannot be read.
    """
    return render_texts([str(number) for number in checked_numbers(numbers)], style)


def render_texts(texts: Sequence[str], style: CardStyle | None = None) -> Image.Image:
    """Return the image of a card with any four texts; see ``render_card``."""
    from PIL import Image, ImageDraw

    style = style or CardStyle()
    image = Image.new("L", (SIDE, SIDE), style.paper)
    pen = ImageDraw.Draw(image)
    if style.lines:
        pen.rectangle((1, 1, SIDE - 2, SIDE - 2), outline=style.ink, width=2)
        pen.line((CELL, 0, CELL, SIDE), fill=style.ink, width=2)
        pen.line((0, CELL, SIDE, CELL), fill=style.ink, width=2)
    font = font_of(style.font, max(1, round(style.size * CELL)))
    for index, (text, (right, down)) in enumerate(zip(texts, style.offsets, strict=True)):
        row, column = divmod(index, 2)
        centre = ((column + 0.5) * CELL + right, (row + 0.5) * CELL + down)
        pen.text(centre, text, fill=style.ink, font=font, anchor="mm")
    return apply_effects(image, style)


def apply_effects(image: Image.Image, style: CardStyle) -> Image.Image:
    """Return an image with the rotation, blur and noise of a style; ``image`` is grey."""
    from PIL import Image, ImageFilter

    if style.rotation:
        image = image.rotate(style.rotation, Image.Resampling.BICUBIC, fillcolor=style.paper)
    if style.blur:
        image = image.filter(ImageFilter.GaussianBlur(style.blur))
    if style.noise:
        rng = np.random.default_rng(style.seed)
        grey = np.asarray(image, dtype=np.float32)
        grey = grey + style.noise * rng.standard_normal(grey.shape, dtype=np.float32)
        image = Image.fromarray(grey.clip(0, 255).round().astype(np.uint8))
    return image
