"""Draws images without a card, which the card reader is trained to refuse.

The training uses ``TRAINED_KINDS`` (outlier exposure, Hendrycks et al. 2019). ``UNSEEN_KINDS`` are
kept for measuring: their share of refused images estimates the share for any other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright_math24.cards import CELL, SIDE, CardStyle, apply_effects, random_style, render_texts
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

#: Font files; None is Pillow's default font.
Fonts = Sequence[Path | None]
#: A function that draws an image of a kind; some kinds ignore the style.
Draw = Callable[[np.random.Generator, CardStyle], "Image.Image"]

#: The rows and columns of grids that differ from a card's 2×2.
GRIDS = ((1, 2), (2, 1), (1, 4), (4, 1), (2, 3), (3, 2), (3, 3), (4, 4), (1, 3), (3, 1))
#: Letters that do not look like digits in any font.
LETTERS = "ACDEFHJKLMNPQRTUVWXYacdefhjkmnprtuvwxy"


def draw_non_card(kinds: Mapping[str, Draw], rng: np.random.Generator, fonts: Fonts) -> Image.Image:
    """Return an image of a random kind: grey (mode "L"), 180×180 pixels."""
    return kinds[str(rng.choice(list(kinds)))](rng, random_style(rng, fonts))


def strange_text(rng: np.random.Generator) -> str:
    """Return a text that is not a number from 1 to 13: one or two letters, 0, or 14 to 999."""
    chance = rng.random()
    if chance < 0.4:
        return str(rng.integers(14, 100))
    if chance < 0.5:
        return str(rng.integers(100, 1000))
    if chance < 0.55:
        return "0"
    return word(rng, 1 if chance < 0.8 else 2)


def word(rng: np.random.Generator, length: int) -> str:
    """Return ``length`` random letters."""
    return "".join(LETTERS[int(i)] for i in rng.integers(len(LETTERS), size=length))


def _blank(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    return render_texts([""] * 4, style)


def _noise(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw noise, summed over one to four scales; it resembles a photograph."""
    scales = rng.choice([1, 2, 4, 8, 16, 32], size=int(rng.integers(1, 5)), replace=False)
    return _to_image(sum((_noise_at(rng, int(scale)) for scale in scales), np.zeros((SIDE, SIDE))))


def _gradient(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw a linear or a radial gradient, with noise."""
    across, down = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE))
    angle = rng.uniform(0, 2 * np.pi)
    levels = across * np.cos(angle) + down * np.sin(angle)
    if rng.random() < 0.5:
        levels = np.hypot(across - rng.uniform(-1, 1), down - rng.uniform(-1, 1))
    return _to_image(levels + rng.uniform(0, 0.1) * rng.standard_normal(levels.shape))


def _scene(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw shapes, each filled with a random grey, on smooth noise."""
    image = _to_image(_noise_at(rng, 32) + _noise_at(rng, 16))
    _draw_shapes(image, rng, int(rng.integers(3, 12)), ink=None)
    return apply_effects(image, style)


def _shapes(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw outlines of shapes in the style's ink."""
    image = render_texts([""] * 4, CardStyle(ink=style.ink, paper=style.paper, lines=style.lines))
    _draw_shapes(image, rng, int(rng.integers(1, 14)), ink=style.ink)
    return apply_effects(image, style)


def _words(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw lines of text, with a few large words or many small words."""
    image, pen = _empty_image(style)
    height = int(rng.integers(9, 48))
    font = font_of(style.font, height)
    for top in range(int(rng.integers(0, height)), SIDE, int(height * 1.3)):
        lengths = rng.integers(1, 9, size=8)
        text = " ".join(
            word(rng, int(n)) if rng.random() < 0.8 else str(rng.integers(2000)) for n in lengths
        )
        pen.text((int(rng.integers(2, 12)), top), text, fill=style.ink, font=font)
    return apply_effects(image, style)


def _large_text(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw a number or a letter in the middle."""
    text = str(rng.integers(0, 100)) if rng.random() < 0.7 else word(rng, 1)
    return _write_at([text], [(0.5, 0.5)], rng.uniform(0.25, 0.9), style)


def _other_grid(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw numbers in a grid that differs from 2×2."""
    rows, columns = GRIDS[int(rng.integers(len(GRIDS)))]
    points = [
        ((column + 0.5) / columns, (row + 0.5) / rows)
        for row in range(rows)
        for column in range(columns)
    ]
    texts = _random_numbers(rng, len(points))
    return _write_at(texts, points, rng.uniform(0.4, 0.6) / max(rows, columns, 2), style)


def _scattered(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw fewer or more than four numbers at random points."""
    points = rng.uniform(0.1, 0.9, (int(rng.choice([1, 2, 3, 6, 7, 8, 9])), 2)).tolist()
    return _write_at(_random_numbers(rng, len(points)), points, rng.uniform(0.12, 0.3), style)


def _strange_cells(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw a card with some empty cells, or with texts that are not numbers from 1 to 13."""
    texts = _random_numbers(rng, 4)
    are_empty = rng.random() < 0.5
    for index in rng.choice(4, size=int(rng.integers(1, 5)), replace=False):
        texts[int(index)] = "" if are_empty else strange_text(rng)
    return render_texts(texts, style)


def _checkers(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw a checkerboard."""
    fields_per_side = int(rng.integers(2, 12))
    fields = np.arange(SIDE) * fields_per_side // SIDE
    return apply_effects(_to_image((fields[:, None] + fields) % 2 * 1.0), style)


def _bars(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw a bar chart with numbers under its axis."""
    image, pen = _empty_image(style)
    count = int(rng.integers(3, 7))
    spacing = (SIDE - 30) / count
    for bar in range(count):
        left = 22 + bar * spacing
        pen.rectangle((left, int(rng.integers(15, 150)), left + spacing * 0.7, 155), fill=style.ink)
        pen.text((left, 160), str(bar + 1), fill=style.ink, font=font_of(style.font, 14))
    pen.line((18, 10, 18, 156, 176, 156), fill=style.ink, width=2)
    return apply_effects(image, style)


def _faces(rng: np.random.Generator, style: CardStyle) -> Image.Image:
    """Draw four faces in a 2×2 grid, the layout of a card."""
    image, pen = _empty_image(style)
    for x, y in product((CELL // 2, CELL + CELL // 2), repeat=2):
        size = int(rng.integers(18, 36))
        pen.ellipse((x - size, y - size, x + size, y + size), outline=style.ink, width=3)
        for eye in (-size // 3, size // 3):
            pen.ellipse((x + eye - 2, y - 9, x + eye + 2, y - 5), fill=style.ink)
        pen.arc((x - 12, y - 6, x + 12, y + 14), 20, 160, fill=style.ink, width=3)
    return apply_effects(image, style)


TRAINED_KINDS: dict[str, Draw] = {
    "blank": _blank,
    "noise": _noise,
    "gradient": _gradient,
    "scene": _scene,
    "shapes": _shapes,
    "words": _words,
    "one large character": _large_text,
    "another grid": _other_grid,
    "scattered numbers": _scattered,
    "strange cells": _strange_cells,
}
UNSEEN_KINDS: dict[str, Draw] = {"checkers": _checkers, "bar chart": _bars, "faces": _faces}


def _random_numbers(rng: np.random.Generator, count: int) -> list[str]:
    """Return ``count`` random numbers from 1 to 13, as texts."""
    return [str(rng.integers(1, 14)) for _ in range(count)]


def _empty_image(style: CardStyle) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Return an image with the style's background, and a pen that draws on the image."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (SIDE, SIDE), style.paper)
    return image, ImageDraw.Draw(image)


def _write_at(
    texts: Sequence[str], points: Sequence[Sequence[float]], size: float, style: CardStyle
) -> Image.Image:
    """Draw texts centred on points; coordinates and font size are shares of the image's side."""
    image, pen = _empty_image(style)
    font = font_of(style.font, max(8, round(size * SIDE)))
    for text, (x, y) in zip(texts, points, strict=True):
        pen.text((x * SIDE, y * SIDE), text, fill=style.ink, font=font, anchor="mm")
    return apply_effects(image, style)


def _draw_shapes(image: Image.Image, rng: np.random.Generator, count: int, ink: int | None) -> None:
    """Draw random shapes: outlines in ``ink``; without ``ink``, shapes filled with random greys."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    for _ in range(count):
        left, right = sorted(rng.integers(-10, SIDE + 10, 2).tolist())
        top, bottom = sorted(rng.integers(-10, SIDE + 10, 2).tolist())
        grey = int(rng.integers(256)) if ink is None else ink
        width = int(rng.integers(1, 9))
        fill = grey if ink is None else None
        match int(rng.integers(4)):
            case 0:
                pen.ellipse((left, top, right, bottom), fill=fill, outline=grey, width=width)
            case 1:
                pen.rectangle((left, top, right, bottom), fill=fill, outline=grey, width=width)
            case 2:
                pen.line((left, bottom, right, top), fill=grey, width=width)
            case _:
                start, end = rng.integers(0, 360, 2).tolist()
                pen.arc((left, top, right, bottom), start, end, fill=grey, width=width)


def _noise_at(rng: np.random.Generator, scale: int) -> np.ndarray:
    """Return smooth noise (180, 180), whose details are about ``scale`` pixels wide."""
    from PIL import Image

    small = rng.standard_normal((SIDE // scale + 2,) * 2).astype(np.float32)
    large = Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(large, dtype=np.float64) * float(rng.uniform(0.2, 1.0))


def _to_image(levels: np.ndarray) -> Image.Image:
    """Return an image of levels, scaled to the range from black to white."""
    from PIL import Image

    low, high = levels.min(), levels.max()
    return Image.fromarray(((levels - low) * (255 / max(high - low, 1e-9))).astype(np.uint8))
