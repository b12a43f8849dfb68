"""What lies on and around a drawn board beside checkers: numbers, dice, cube, trays, texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from casewright_backgammon.board_layout import ROW, Colour, Home
from casewright_backgammon.board_style import BoardStyle, Rgb, luminance
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

#: Where a die's pips are, in thirds of its side.
_PIPS = {
    1: [(0, 0)],
    2: [(-1, -1), (1, 1)],
    3: [(-1, -1), (0, 0), (1, 1)],
    4: [(-1, -1), (1, 1), (-1, 1), (1, -1)],
    5: [(-1, -1), (1, 1), (-1, 1), (1, -1), (0, 0)],
    6: [(-1, -1), (1, 1), (-1, 1), (1, -1), (-1, 0), (1, 0)],
}
_WORDS = ("Pips", "Match", "Score", "to play", "White", "Black", "Cube", "Undo", "Resign", "Game")


@dataclass(frozen=True, slots=True)
class Pens:
    """A canvas and where the parts of the board lie on it, in pixels; see ``board_image.Frame``."""

    canvas: Image.Image
    style: BoardStyle
    unit: float
    xs: tuple[float, float, float, float]
    ys: tuple[float, float, float]
    trays: tuple[tuple[float, float], ...]

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        """What draws on the canvas."""
        from PIL import ImageDraw

        return ImageDraw.Draw(self.canvas)


def draw_extras(
    pens: Pens, labels: Sequence[int], off: tuple[int, int], own: Colour, home: Home
) -> None:
    """Draw all that a style asks for beside field and checkers.

    Args:
        pens: Canvas, style, and where things lie.
        labels: The points of slices 0 to 23.
        off: Checkers borne off, of the player on roll and of the other.
        own: The colour of the player on roll.
        home: Where he bears off.
    """
    rng = np.random.default_rng(pens.style.seed)
    if pens.style.labels:
        _labels(pens, labels)
    if pens.style.hinges:
        _hinges(pens)
    _off(pens, off, own, home)
    _dice(pens, rng)
    _cube(pens, rng)


def drawn_text(
    pens: Pens,
    at: tuple[float, float],
    text: str,
    height: float,
    ink: Rgb,
    *,
    boxed: bool = False,
) -> None:
    """Write a text around a place, on a box of the frame's colour if asked for."""
    font = font_of(pens.style.font, max(6, round(height)))
    pen = pens.pen
    if boxed:
        left, top, right, bottom = pen.textbbox(at, text, font=font, anchor="mm")
        pad = 0.15 * height
        pen.rectangle((left - pad, top - pad, right + pad, bottom + pad), fill=pens.style.frame)
    pen.text(at, text, fill=ink, font=font, anchor="mm")


def some_words(rng: np.random.Generator) -> str:
    """Return a short text such as stands around a board."""
    words = [str(rng.choice(_WORDS)) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.7:
        words.append(f": {rng.integers(0, 200)}")
    return " ".join(words)


def _labels(pens: Pens, labels: Sequence[int]) -> None:
    _, top, _, bottom = pens.style.frames
    for place, label in enumerate(labels):
        column = place % ROW
        x = pens.xs[0 if column < 6 else 2] + (column % 6 + 0.5) * pens.unit
        below = place < ROW
        room = (bottom if below else top) * pens.unit
        height = min(0.8 * room, 0.32 * pens.unit)
        if height < 5:
            continue
        y = pens.ys[2] + room / 2 if below else pens.ys[0] - room / 2
        drawn_text(pens, (x, y), str(label), height, pens.style.ink)


def _hinges(pens: Pens) -> None:
    middle = (pens.xs[1] + pens.xs[2]) / 2
    wide, high = 0.3 * min(pens.style.bar, 1) * pens.unit, 0.5 * pens.unit
    for share in (0.22, 0.78):
        y = pens.ys[0] + share * (pens.ys[2] - pens.ys[0])
        box = (middle - wide, y - high, middle + wide, y + high)
        pens.pen.rectangle(box, fill=(196, 168, 92), outline=(90, 70, 30))


def _off(pens: Pens, off: tuple[int, int], own: Colour, home: Home) -> None:
    if not pens.trays or pens.style.off == "none":
        return
    # With two trays the checkers lie on the side where they are borne off.
    start, end = pens.trays[-1 if home == "right" else 0]
    top, middle, bottom = pens.ys
    style = pens.style
    colours = (style.light, style.dark) if own == "light" else (style.dark, style.light)
    room = bottom - middle - 0.1 * pens.unit
    for count, colour, below in zip(off, colours, (True, False), strict=True):
        if not count:
            continue
        if style.off == "number":
            y = (middle + bottom) / 2 if below else (top + middle) / 2
            drawn_text(pens, ((start + end) / 2, y), str(count), 0.6 * pens.unit, style.ink)
            continue
        thick = min(0.32 * pens.unit, room / 15)
        pad = 0.08 * (end - start)
        for number in range(count):
            near = bottom - (number + 1) * thick if below else top + number * thick
            box = (start + pad, near + 1, end - pad, near + thick - 1)
            if box[3] > box[1]:
                edge = style.light_rim if colour == style.light else style.dark_rim
                pens.pen.rectangle(box, fill=colour, outline=edge)


def _dice(pens: Pens, rng: np.random.Generator) -> None:
    style = pens.style
    if style.dice == "none" or (style.dice == "tray" and not pens.trays):
        return
    side = float(rng.uniform(0.5, 0.85)) * pens.unit
    middle = pens.ys[1] + float(rng.uniform(-0.2, 0.2)) * pens.unit
    match style.dice:
        case "bar":
            side = min(side, 0.8 * style.bar * pens.unit)
            x = (pens.xs[1] + pens.xs[2]) / 2
            spots = [(x, middle - 0.7 * side), (x, middle + 0.7 * side)]
        case "tray":
            x = sum(pens.trays[-1]) / 2
            spots = [(x, middle - 0.7 * side), (x, middle + 0.7 * side)]
        case _:
            start = pens.xs[2] if rng.random() < 0.6 else pens.xs[0]
            x = start + float(rng.uniform(1.5, 4.5)) * pens.unit
            spots = [(x - 0.65 * side, middle), (x + 0.65 * side, middle)]
    face = style.light if rng.random() < 0.5 else style.dark
    if rng.random() < 0.3:
        face = (250, 250, 250)
    ink = (15, 15, 15) if luminance(face) > 110 else (240, 240, 240)
    round_by = float(rng.uniform(0, 0.25)) * side
    for x, y in spots:
        box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)
        pens.pen.rounded_rectangle(box, round_by, fill=face, outline=ink)
        pip = 0.09 * side
        for right, down in _PIPS[int(rng.integers(1, 7))]:
            a, b = x + right * side * 0.27, y + down * side * 0.27
            pens.pen.ellipse((a - pip, b - pip, a + pip, b + pip), fill=ink)


def _cube(pens: Pens, rng: np.random.Generator) -> None:
    style = pens.style
    if style.cube == "none" or (style.cube == "tray" and not pens.trays):
        return
    top, middle, bottom = pens.ys
    side = float(rng.uniform(0.55, 0.9)) * pens.unit
    match style.cube:
        case "bar":
            side = min(side, 0.85 * style.bar * pens.unit)
            x = (pens.xs[1] + pens.xs[2]) / 2
            # Where checkers on the bar begin at the edge, the edge is not free, and so on.
            y = middle if style.bar_from != "edge" else middle + 0.1 * pens.unit
        case "tray":
            start, end = pens.trays[int(rng.integers(len(pens.trays)))]
            side = min(side, 0.9 * (end - start))
            x = (start + end) / 2
            y = float(rng.choice([top + side, middle, bottom - side]))
        case _:
            x = pens.xs[0] + float(rng.uniform(1, 5)) * pens.unit
            y = middle
    face = (245, 245, 240) if rng.random() < 0.6 else (60, 50, 40)
    ink = (10, 10, 10) if luminance(face) > 110 else (240, 240, 240)
    box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)
    pens.pen.rounded_rectangle(box, 0.12 * side, fill=face, outline=ink)
    value = str(rng.choice(["2", "4", "8", "16", "32", "64", "1"]))
    drawn_text(pens, (x, y), value, 0.55 * side, ink)
