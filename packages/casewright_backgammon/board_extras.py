"""Drawing of a board's point numbers, hinges, borne-off checkers, dice, cube and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from casewright_backgammon.board_layout import ROW_SLICES, Colour, Home
from casewright_backgammon.board_style import BoardStyle, Rgb, luminance
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

#: Corners of a die; the first two are opposite, and so are the last two.
_CORNERS = [(-1, -1), (1, 1), (-1, 1), (1, -1)]
#: Positions of a die's pips relative to the middle of the die, by the number of pips.
_PIPS = {
    1: [(0, 0)],
    2: _CORNERS[:2],
    3: [*_CORNERS[:2], (0, 0)],
    4: _CORNERS,
    5: [*_CORNERS, (0, 0)],
    6: [*_CORNERS, (-1, 0), (1, 0)],
}
_WORDS = ("Pips", "Match", "Score", "to play", "White", "Black", "Cube", "Undo", "Resign", "Game")


@dataclass(frozen=True, slots=True)
class Sheet:
    """An unfinished drawing of a board."""

    canvas: Image.Image
    style: BoardStyle
    unit: float  # width of a slice, in pixels; all other lengths are in pixels too
    #: Left edge of the field, both edges of the bar, right edge of the field.
    xs: tuple[float, float, float, float]
    ys: tuple[float, float, float]  # upper edge, middle and lower edge of the field
    trays: tuple[tuple[float, float], ...]  # left and right edge of each tray

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        """Pillow's object for drawing on the canvas."""
        from PIL import ImageDraw

        return ImageDraw.Draw(self.canvas)


def draw_extras(
    sheet: Sheet, labels: Sequence[int], off: tuple[int, int], own: Colour, home: Home
) -> None:
    """Draw a board's point numbers, hinges, borne-off checkers, dice and cube, as the style says.

    ``labels`` are the numbers of the points in slices 0 to 23. ``BoardReader.read`` explains
    ``off``, ``own`` and ``home``.
    """
    rng = np.random.default_rng(sheet.style.seed)
    if sheet.style.has_labels:
        _draw_labels(sheet, labels)
    if sheet.style.has_hinges:
        _draw_hinges(sheet)
    _draw_off(sheet, off, own, home)
    _draw_dice(sheet, rng)
    _draw_cube(sheet, rng)


def draw_text(
    sheet: Sheet,
    centre: tuple[float, float],
    text: str,
    height: float,
    ink: Rgb,
    *,
    has_box: bool = False,
) -> None:
    """Draw a text centred on a pixel; if ``has_box``, in front of a box in the frame's colour."""
    font = font_of(sheet.style.font, max(6, round(height)))
    if has_box:
        left, top, right, bottom = sheet.pen.textbbox(centre, text, font=font, anchor="mm")
        pad = 0.15 * height
        box = (left - pad, top - pad, right + pad, bottom + pad)
        sheet.pen.rectangle(box, fill=sheet.style.frame)
    sheet.pen.text(centre, text, fill=ink, font=font, anchor="mm")


def random_words(rng: np.random.Generator) -> str:
    """Return a short random text, like those that programs show around a board."""
    words = [str(rng.choice(_WORDS)) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.7:
        words.append(f": {rng.integers(0, 200)}")
    return " ".join(words)


def _draw_labels(sheet: Sheet, labels: Sequence[int]) -> None:
    _, top, _, bottom = sheet.style.frames
    for index, label in enumerate(labels):
        column = index % ROW_SLICES
        x = sheet.xs[0 if column < 6 else 2] + (column % 6 + 0.5) * sheet.unit
        is_lower = index < ROW_SLICES
        space = (bottom if is_lower else top) * sheet.unit
        height = min(0.8 * space, 0.32 * sheet.unit)
        if height >= 5:
            y = sheet.ys[2] + space / 2 if is_lower else sheet.ys[0] - space / 2
            draw_text(sheet, (x, y), str(label), height, sheet.style.ink)


def _draw_hinges(sheet: Sheet) -> None:
    x = (sheet.xs[1] + sheet.xs[2]) / 2
    half_width, half_height = 0.3 * min(sheet.style.bar, 1) * sheet.unit, 0.5 * sheet.unit
    for share in (0.22, 0.78):
        y = sheet.ys[0] + share * (sheet.ys[2] - sheet.ys[0])
        box = (x - half_width, y - half_height, x + half_width, y + half_height)
        sheet.pen.rectangle(box, fill=(196, 168, 92), outline=(90, 70, 30))


def _draw_off(sheet: Sheet, off: tuple[int, int], own: Colour, home: Home) -> None:
    if not sheet.trays or sheet.style.off == "none":
        return
    # If there are two trays, the checkers lie in the tray on the bear-off side.
    start, end = sheet.trays[-1 if home == "right" else 0]
    top, middle, bottom = sheet.ys
    style = sheet.style
    colours = (style.light, style.dark) if own == "light" else (style.dark, style.light)
    thickness = min(0.32 * sheet.unit, (bottom - middle - 0.1 * sheet.unit) / 15)
    pad = 0.08 * (end - start)
    for count, colour, is_lower in zip(off, colours, (True, False), strict=True):
        if style.off == "number":
            y = (middle + bottom) / 2 if is_lower else (top + middle) / 2
            if count:
                draw_text(sheet, ((start + end) / 2, y), str(count), 0.6 * sheet.unit, style.ink)
            continue
        edge = style.light_rim if colour == style.light else style.dark_rim
        for number in range(count):
            y = bottom - (number + 1) * thickness if is_lower else top + number * thickness
            box = (start + pad, y + 1, end - pad, y + thickness - 1)
            if box[3] > box[1]:
                sheet.pen.rectangle(box, fill=colour, outline=edge)


def _draw_dice(sheet: Sheet, rng: np.random.Generator) -> None:
    style = sheet.style
    if style.dice == "none" or (style.dice == "tray" and not sheet.trays):
        return
    side = float(rng.uniform(0.5, 0.85)) * sheet.unit
    dice_y = sheet.ys[1] + float(rng.uniform(-0.2, 0.2)) * sheet.unit
    if style.dice in ("bar", "tray"):
        if style.dice == "bar":
            side = min(side, 0.8 * style.bar * sheet.unit)
        x = sum(sheet.xs[1:3] if style.dice == "bar" else sheet.trays[-1]) / 2
        centres = [(x, dice_y - 0.7 * side), (x, dice_y + 0.7 * side)]
    else:
        start = sheet.xs[2] if rng.random() < 0.6 else sheet.xs[0]
        x = start + float(rng.uniform(1.5, 4.5)) * sheet.unit
        centres = [(x - 0.65 * side, dice_y), (x + 0.65 * side, dice_y)]
    face = style.light if rng.random() < 0.5 else style.dark
    if rng.random() < 0.3:
        face = (250, 250, 250)
    ink = (15, 15, 15) if luminance(face) > 110 else (240, 240, 240)
    corner_radius = float(rng.uniform(0, 0.25)) * side
    for x, y in centres:
        box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)
        sheet.pen.rounded_rectangle(box, corner_radius, fill=face, outline=ink)
        radius = 0.09 * side
        for right, down in _PIPS[int(rng.integers(1, 7))]:
            pip_x, pip_y = x + right * side * 0.27, y + down * side * 0.27
            pip_box = (pip_x - radius, pip_y - radius, pip_x + radius, pip_y + radius)
            sheet.pen.ellipse(pip_box, fill=ink)


def _draw_cube(sheet: Sheet, rng: np.random.Generator) -> None:
    style = sheet.style
    if style.cube == "none" or (style.cube == "tray" and not sheet.trays):
        return
    top, middle, bottom = sheet.ys
    side = float(rng.uniform(0.55, 0.9)) * sheet.unit
    match style.cube:
        case "bar":
            side = min(side, 0.85 * style.bar * sheet.unit)
            x = (sheet.xs[1] + sheet.xs[2]) / 2
            # Checkers on the bar must not cover the cube.
            y = middle if style.bar_from != "edge" else middle + 0.1 * sheet.unit
        case "tray":
            start, end = sheet.trays[int(rng.integers(len(sheet.trays)))]
            side = min(side, 0.9 * (end - start))
            x = (start + end) / 2
            y = float(rng.choice([top + side, middle, bottom - side]))
        case _:
            x = sheet.xs[0] + float(rng.uniform(1, 5)) * sheet.unit
            y = middle
    face = (245, 245, 240) if rng.random() < 0.6 else (60, 50, 40)
    ink = (10, 10, 10) if luminance(face) > 110 else (240, 240, 240)
    box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)
    sheet.pen.rounded_rectangle(box, 0.12 * side, fill=face, outline=ink)
    value = str(rng.choice(["2", "4", "8", "16", "32", "64", "1"]))
    draw_text(sheet, (x, y), value, 0.55 * side, ink)
