"""Drawing of pictures without a board; the reader of boards learns to refuse them.

The training uses ``TRAINING_KINDS`` of pictures. The share of refused pictures of ``UNSEEN_KINDS``
is an estimate for all other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from casewright_backgammon.board_extras import random_words
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

#: A kind of picture: a function that draws a random picture of this kind.
Kind = Callable[[np.random.Generator], "Image.Image"]
Rgb = tuple[int, int, int]


def draw_non_board(kinds: Mapping[str, Kind], rng: np.random.Generator) -> Image.Image:
    """Return a picture of a randomly chosen kind, 200 to 640 pixels wide, of mode "RGB"."""
    return kinds[str(rng.choice(list(kinds)))](rng)


def _blank(rng: np.random.Generator) -> Image.Image:
    return _sheet(rng)[0]


def _noise(rng: np.random.Generator) -> Image.Image:
    """Draw noise at several scales, like a blurred photograph or cloth."""
    from PIL import Image

    width, height = _random_size(rng)
    levels = np.zeros((height, width, 3))
    for scale in rng.choice([1, 2, 4, 8, 16, 32, 64], size=int(rng.integers(1, 5)), replace=False):
        levels += _cloud(rng, width, height, int(scale))
    levels -= levels.min()
    return Image.fromarray((levels * (255 / max(levels.max(), 1e-9))).astype(np.uint8))


def _scene(rng: np.random.Generator) -> Image.Image:
    """Draw shapes of many colours on a cloudy or plain background."""
    from PIL import ImageDraw

    image = _noise(rng) if rng.random() < 0.6 else _sheet(rng)[0]
    pen = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(2, 40))):
        x, y = rng.uniform(-0.1, 1, 2) * image.size
        width, height = rng.uniform(0.02, 0.5, 2) * image.size
        box = (x, y, x + width, y + height)
        match int(rng.integers(4)):
            case 0:
                pen.ellipse(box, fill=_random_colour(rng), outline=_random_colour(rng), width=2)
            case 1:
                pen.rectangle(box, fill=_random_colour(rng), outline=_random_colour(rng), width=2)
            case 2:
                corners = [(x, y), (x + width, y), (x + width / 2, y + height)]
                pen.polygon(corners, fill=_random_colour(rng))
            case _:
                pen.line(box, fill=_random_colour(rng), width=int(rng.integers(1, 12)))
    return image


def _text(rng: np.random.Generator) -> Image.Image:
    """Draw a page of text in one or two columns."""
    image, pen, ink = _sheet(rng)
    height = int(rng.integers(8, 30))
    columns = int(rng.integers(1, 3))
    for column in range(columns):
        left = 10 + column * image.width // columns
        for top in range(10, image.height - height, int(height * rng.uniform(1.1, 1.8))):
            if rng.random() < 0.15:
                continue
            words = " ".join(random_words(rng) for _ in range(int(rng.integers(1, 6))))
            text = words[: max(1, int((image.width / columns - 20) / (0.55 * height)))]
            pen.text((left, top), text, fill=ink, font=font_of(None, height))
    return image


def _table(rng: np.random.Generator) -> Image.Image:
    """Draw a grid with numbers: a table, a calendar, a card."""
    image, pen, ink = _sheet(rng)
    rows, columns = rng.integers(1, 15, 2).tolist()
    width, height = image.width / columns, image.height / rows
    outline = ink if rng.random() < 0.8 else None
    for row in range(rows):
        for column in range(columns):
            x, y = column * width, row * height
            fill = _random_colour(rng) if rng.random() < 0.1 else None
            pen.rectangle((x, y, x + width, y + height), fill=fill, outline=outline)
            if rng.random() < 0.7:
                font = font_of(None, max(7, int(0.45 * min(width, height))))
                text = str(rng.integers(0, 100))
                pen.text((x + width / 2, y + height / 2), text, fill=ink, font=font, anchor="mm")
    return image


def _squares(rng: np.random.Generator) -> Image.Image:
    """Draw a board of squares with round pieces, as for draughts, Go or Reversi."""
    image, pen, ink = _sheet(rng)
    cells = int(rng.choice([3, 6, 7, 8, 8, 8, 10, 12, 19]))
    side = min(image.size) * rng.uniform(0.7, 1) / cells
    left, top = (image.width - cells * side) / 2, (image.height - cells * side) / 2
    square_colours = _random_colour(rng), _random_colour(rng)
    piece_colours = _random_colour(rng), _random_colour(rng)
    is_chequered, piece_share = rng.random() < 0.6, rng.uniform(0, 0.7)
    for row in range(cells):
        for column in range(cells):
            x, y = left + column * side, top + row * side
            fill = square_colours[(row + column) % 2 if is_chequered else 0]
            pen.rectangle((x, y, x + side, y + side), fill=fill, outline=ink)
            if rng.random() < piece_share:
                pad = 0.1 * side
                box = (x + pad, y + pad, x + side - pad, y + side - pad)
                pen.ellipse(box, fill=piece_colours[int(rng.integers(2))], outline=ink)
    return image


def _chart(rng: np.random.Generator) -> Image.Image:
    """Draw bars or curves over an axis."""
    image, pen, ink = _sheet(rng)
    left, bottom = 0.1 * image.width, 0.88 * image.height
    count = int(rng.integers(3, 26))
    step = 0.85 * image.width / count
    heights = rng.uniform(0.05, 0.8, count) * image.height
    points = [(left + bar * step, bottom - height) for bar, height in enumerate(heights)]
    colour = _random_colour(rng)
    if rng.random() < 0.6:
        for x, y in points:
            pen.rectangle((x, y, x + 0.7 * step, bottom), fill=colour)
    else:
        pen.line(points, fill=colour, width=3)
    pen.line((left, 0.05 * image.height, left, bottom, 0.97 * image.width, bottom), fill=ink)
    for bar in range(0, count, max(1, count // 8)):
        pen.text((left + bar * step, bottom + 4), str(bar), fill=ink, font=font_of(None, 11))
    return image


def _rows(rng: np.random.Generator) -> Image.Image:
    """Draw rows of triangles, discs or bars, like parts of a backgammon board."""
    image, pen, _ = _sheet(rng)
    columns = int(rng.choice([2, 3, 4, 5, 8, 9, 16, 20, 30]))
    width = image.width / columns
    colours = (_random_colour(rng), _random_colour(rng))
    shape = int(rng.integers(3))
    for row in range(int(rng.integers(1, 6))):
        y = row * image.height / 4
        for column in range(columns):
            x, fill = column * width, colours[column % 2]
            if shape == 0:
                tip = (x + width / 2, y + image.height / 4.5)
                pen.polygon([(x, y), (x + width, y), tip], fill=fill)
            elif shape == 1:
                pen.ellipse((x, y, x + width, y + width), fill=fill)
            else:
                pen.rectangle((x, y, x + 0.6 * width, y + image.height / 5), fill=fill)
    return image


def _gradient(rng: np.random.Generator) -> Image.Image:
    from PIL import Image

    width, height = _random_size(rng)
    across, down = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    angle = rng.uniform(0, 2 * np.pi)
    ratio = (1 + across * np.cos(angle) / 1.5 + down * np.sin(angle) / 1.5) / 2
    start, end = np.array(_random_colour(rng)), np.array(_random_colour(rng))
    return Image.fromarray((start + (end - start) * ratio.clip(0, 1)[..., None]).astype(np.uint8))


def _rings(rng: np.random.Generator) -> Image.Image:
    """Draw concentric circles with twelve spokes, like a target, a dartboard or a clock."""
    image, pen, ink = _sheet(rng)
    x, y = rng.uniform(0.35, 0.65, 2) * image.size
    radius = 0.48 * min(image.size)
    for ratio in np.linspace(1, 0.1, int(rng.integers(2, 9))):
        r = radius * ratio
        pen.ellipse((x - r, y - r, x + r, y + r), fill=_random_colour(rng), outline=ink)
    for hour in range(12):
        angle = hour * np.pi / 6
        end = (x + radius * np.cos(angle), y + radius * np.sin(angle))
        pen.line((x, y, *end), fill=ink, width=2)
    return image


def _hexagons(rng: np.random.Generator) -> Image.Image:
    """Draw a board of hexagons, some with discs."""
    image, pen, ink = _sheet(rng)
    side = image.width / float(rng.uniform(8, 20))
    colours = [_random_colour(rng) for _ in range(3)]
    for row in range(int(image.height / (1.5 * side)) + 1):
        for column in range(int(image.width / (1.73 * side)) + 1):
            x, y = (column + row % 2 / 2) * 1.73 * side, row * 1.5 * side
            angles = np.arange(6) * np.pi / 3 + np.pi / 6
            corners = [(x + side * np.cos(a), y + side * np.sin(a)) for a in angles]
            pen.polygon(corners, fill=colours[(row + column) % 3], outline=ink)
            if rng.random() < 0.3:
                r = 0.6 * side
                pen.ellipse((x - r, y - r, x + r, y + r), fill=_random_colour(rng), outline=ink)
    return image


def _stripes(rng: np.random.Generator) -> Image.Image:
    """Draw slanted stripes."""
    image, pen, ink = _sheet(rng)
    step = int(rng.integers(8, 60))
    slant = int(rng.integers(-300, 300))
    for x in range(-300, image.width + 300, step):
        pen.line((x, 0, x + slant, image.height), fill=ink, width=max(1, step // 2))
    return image


TRAINING_KINDS: dict[str, Kind] = {
    "blank": _blank,
    "noise": _noise,
    "scene": _scene,
    "text": _text,
    "table": _table,
    "squares": _squares,
    "chart": _chart,
    "rows": _rows,
    "gradient": _gradient,
}
UNSEEN_KINDS: dict[str, Kind] = {"rings": _rings, "hexagons": _hexagons, "stripes": _stripes}


def _random_size(rng: np.random.Generator) -> tuple[int, int]:
    width = int(rng.integers(200, 641))
    return width, max(120, int(width * rng.uniform(0.5, 1.3)))


def _sheet(rng: np.random.Generator) -> tuple[Image.Image, ImageDraw.ImageDraw, Rgb]:
    """Return a blank picture, a pen that draws on it, and a colour that contrasts with it."""
    from PIL import Image, ImageDraw

    paper = (255, 255, 255) if rng.random() < 0.4 else _random_colour(rng)
    ink: Rgb = (0, 0, 0) if sum(paper) > 380 else (255, 255, 255)
    image = Image.new("RGB", _random_size(rng), paper)
    return image, ImageDraw.Draw(image), ink


def _random_colour(rng: np.random.Generator) -> Rgb:
    red, green, blue = rng.integers(0, 256, 3).tolist()
    return red, green, blue


def _cloud(rng: np.random.Generator, width: int, height: int, scale: int) -> np.ndarray:
    """Return smooth noise (height, width, 3) with features about ``scale`` pixels wide."""
    from PIL import Image

    levels = rng.integers(0, 256, (height // scale + 2, width // scale + 2, 3))
    small = Image.fromarray(levels.astype(np.uint8))
    large = small.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(large, dtype=np.float64) * float(rng.uniform(0.2, 1))
