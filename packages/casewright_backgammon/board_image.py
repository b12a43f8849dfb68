"""Diagrams of backgammon boards, drawn with Pillow.

How a board is looked at is told in ``board_layout``: the player on roll sits below. The same
position and style give the same picture.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_extras import Pens, draw_extras, drawn_text
from casewright_backgammon.board_finish import finished, grained
from casewright_backgammon.board_layout import (
    LOWER_BAR,
    ROW,
    UPPER_BAR,
    Colour,
    Home,
    checked_view,
    point_of_slice,
    signed_counts,
)
from casewright_backgammon.board_style import PLAIN, BoardStyle, Rgb, luminance
from casewright_backgammon.position import POINTS, Position, checked

if TYPE_CHECKING:
    from PIL import Image

#: Places of a half board's corners: the field's and the bar's edges.
LANDMARKS = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the parts of a board lie, in pixels of the canvas that it is drawn on.

    Attributes:
        unit: Width of a slice.
        xs: Left edge of the field, both edges of the bar, right edge of the field.
        ys: Upper edge, middle and lower edge of the field.
        trays: Left and right edges of the trays.
        size: Of the whole canvas.
    """

    unit: float
    xs: tuple[float, float, float, float]
    ys: tuple[float, float, float]
    trays: tuple[tuple[float, float], ...]
    size: tuple[int, int]


def render_board(
    position: Position, style: BoardStyle = PLAIN, own: Colour = "light", home: Home = "right"
) -> Image.Image:
    """Draw a board.

    Args:
        position: What stands on it; the player on roll sits below.
        style: How it looks.
        own: The colour of the player on roll.
        home: Where he bears off.

    Returns:
        An image of mode "RGB", ``style.width`` pixels wide beside margins; 720×520 as it comes.

    Raises:
        InputError: The position cannot arise, ``own`` or ``home`` is none of its values, or the
            font cannot be read.
    """
    return draw_board(position, style, own, home)[0]


def board_png(
    position: Position, style: BoardStyle = PLAIN, own: Colour = "light", home: Home = "right"
) -> bytes:
    """Draw a board as the bytes of a PNG file; see ``render_board``."""
    into = io.BytesIO()
    render_board(position, style, own, home).save(into, "PNG")
    return into.getvalue()


def draw_board(
    position: Position, style: BoardStyle, own: Colour = "light", home: Home = "right"
) -> tuple[Image.Image, NDArray[np.float64]]:
    """Draw a board, and say where it lies; see ``render_board``.

    Returns:
        The image, and the pixels (x, y) of eight landmarks, array (8, 2): the field's left edge,
        the bar's left and right edges, the field's right edge, on the upper edge, then on the
        lower edge.
    """
    from PIL import Image

    checked_view(own, home)
    checked(position)
    frame = _frame(style)
    canvas = Image.new("RGB", frame.size, style.frame)
    if style.grain:
        canvas = grained(canvas, style, 0.6)
    _draw_field(canvas, frame, style)
    pens = Pens(canvas, style, frame.unit, frame.xs, frame.ys, frame.trays)
    labels = [point_of_slice(place, home) for place in range(POINTS)]
    draw_extras(pens, labels, position.off, own, home)
    counts = signed_counts(position, own, home, own_bar_below=style.own_bar_below)
    for place, count in enumerate(counts):
        if count:
            _draw_stack(canvas, frame, style, place, count)
    corners = np.array([(x, y) for y in (frame.ys[0], frame.ys[2]) for x in frame.xs])
    return finished(canvas, corners, style)


def _frame(style: BoardStyle) -> Frame:
    left, top, right, bottom = style.frames
    before = style.tray + left if style.trays in ("left", "both") else 0.0
    after = style.tray + right if style.trays in ("right", "both") else 0.0
    wide = before + left + ROW + style.bar + right + after
    unit = style.width * style.fine / wide
    start = before + left
    xs = (start, start + 6, start + 6 + style.bar, start + ROW + style.bar)
    ys = (top, top + style.half, top + 2 * style.half)
    trays = []
    if before:
        trays.append((left, left + style.tray))
    if after:
        trays.append((xs[3] + right, xs[3] + right + style.tray))
    return Frame(
        unit,
        (xs[0] * unit, xs[1] * unit, xs[2] * unit, xs[3] * unit),
        (ys[0] * unit, ys[1] * unit, ys[2] * unit),
        tuple((a * unit, b * unit) for a, b in trays),
        (round(wide * unit), round((ys[2] + bottom) * unit)),
    )


def _draw_field(canvas: Image.Image, frame: Frame, style: BoardStyle) -> None:
    from PIL import Image, ImageDraw

    field = Image.new("RGB", frame.size, style.field)
    if style.grain:
        field = grained(field, style, 1.0)
    left, bar, after, right = frame.xs
    top, _, bottom = frame.ys
    for start, end in ((left, bar), (after, right), *frame.trays):
        box = (round(start), round(top), round(end), round(bottom))
        canvas.paste(field.crop(box), box[:2])
    pen = ImageDraw.Draw(canvas)
    pen.rectangle((bar, top, after, bottom), fill=style.bar_colour)
    if style.outline:
        line = max(1, round(style.outline * frame.unit))
        pen.rectangle((left, top, right, bottom), outline=_line_colour(style), width=line)
        pen.rectangle((bar, top, after, bottom), outline=_line_colour(style), width=line)
    _draw_points(canvas, frame, style)


def _line_colour(style: BoardStyle) -> Rgb:
    return (20, 20, 20) if luminance(style.field) > 70 else (200, 200, 200)


def _draw_points(canvas: Image.Image, frame: Frame, style: BoardStyle) -> None:
    from PIL import Image, ImageDraw

    masks = [Image.new("1", frame.size) for _ in style.points]
    shapes: list[list[list[tuple[float, float]]]] = [[], []]
    for place in range(POINTS):
        # The colours take turns along a row, and stand crosswise.
        turn = (place + place // ROW) % 2
        shape = _point(frame, style, place)
        ImageDraw.Draw(masks[turn]).polygon(shape, fill=1)
        shapes[turn].append(shape)
    pen = ImageDraw.Draw(canvas)
    width = round(style.outline * frame.unit)
    for turn, (mask, colour) in enumerate(zip(masks, style.points, strict=True)):
        if style.pattern == "plain" or turn == 0:
            fill = Image.new("RGB", frame.size, colour)
            if style.grain:
                fill = grained(fill, style, 0.7)
            canvas.paste(fill, mask=mask)
        elif style.pattern == "hatched":
            canvas.paste(_hatched(frame, style), mask=mask)
        if width or (style.pattern != "plain" and turn):
            for shape in shapes[turn]:
                pen.line(
                    [*shape, shape[0]],
                    fill=_line_colour(style) if width else colour,
                    width=max(width, 2),
                )


def _hatched(frame: Frame, style: BoardStyle) -> Image.Image:
    from PIL import Image, ImageDraw

    fill = Image.new("RGB", frame.size, style.field)
    pen = ImageDraw.Draw(fill)
    wide, high = frame.size
    step = max(3, round(frame.unit * (0.12 + (style.seed % 7) * 0.03)))
    lean = high if style.seed % 2 else 0
    for start in range(-high, wide + high, step):
        pen.line((start, 0, start + lean, high), fill=style.points[1], width=max(1, step // 3))
    return fill


def _left(frame: Frame, place: int) -> float:
    """Return the left edge of a slice's place."""
    if place >= POINTS:
        return (frame.xs[1] + frame.xs[2] - frame.unit) / 2
    column = place % ROW
    return frame.xs[0 if column < 6 else 2] + (column % 6) * frame.unit


def _point(frame: Frame, style: BoardStyle, place: int) -> list[tuple[float, float]]:
    base, inward = _base(frame, place)
    centre = _left(frame, place) + frame.unit / 2
    long = style.length * style.half * frame.unit
    steps = np.linspace(0, 1, 2 if style.taper == 1 else 9)
    narrow = style.blunt + (1 - style.blunt) * (1 - steps) ** style.taper
    wide = narrow * style.point_width * frame.unit / 2
    there = [(centre - w, base + inward * t * long) for t, w in zip(steps, wide, strict=True)]
    back = [(centre + w, base + inward * t * long) for t, w in zip(steps, wide, strict=True)]
    return there + back[::-1]


def _base(frame: Frame, place: int) -> tuple[float, int]:
    """Return the edge that a stack begins at, and which way it grows."""
    below = place < ROW or place == LOWER_BAR
    return (frame.ys[2], -1) if below else (frame.ys[0], 1)


def _draw_stack(
    canvas: Image.Image, frame: Frame, style: BoardStyle, place: int, count: int
) -> None:
    unit = frame.unit
    across = style.size * unit
    x = _left(frame, place) + unit / 2
    number = abs(count)
    if place in (LOWER_BAR, UPPER_BAR):
        # A bar may be narrower than a checker, and stacks on it have less room.
        across = min(across, max(style.bar * 1.1, 0.6) * unit)
        fit = min(style.fit, max(1, int(style.half * unit / across)) - 1)
        start, way = _bar_start(frame, style, place, min(number, fit) * across, across)
    else:
        fit = style.fit
        edge, way = _base(frame, place)
        start = edge + way * style.gap * unit
    step = across * style.spacing
    sprite = _sprites(style, round(across), count > 0)
    spots, written = _spots(style, number, max(fit, 1))
    for spot in spots:
        y = start + way * (across / 2 + spot * step)
        _lay(canvas, sprite, x, y)
    if written is not None:
        pens = Pens(canvas, style, unit, frame.xs, frame.ys, frame.trays)
        y = start + way * (across / 2 + written * step)
        on_checker = written <= max(spots)
        colour = style.light if count > 0 else style.dark
        ink = style.ink
        if on_checker:
            ink = (10, 10, 10) if luminance(colour) > 110 else (245, 245, 245)
        share = 0.62 if number < 10 else 0.54
        drawn_text(pens, (x, y), str(number), share * across, ink, boxed=not on_checker)


def _bar_start(
    frame: Frame, style: BoardStyle, place: int, long: float, across: float
) -> tuple[float, int]:
    """Return where a stack on the bar begins, and which way it grows."""
    top, middle, bottom = frame.ys
    below = place == LOWER_BAR
    room = bottom - middle
    match style.bar_from:
        case "middle":
            space = 0.05 * frame.unit + (0.5 * frame.unit if style.cube == "bar" else 0.0)
            return (middle + space, 1) if below else (middle - space, -1)
        case "edge":
            space = (0.6 if style.cube == "bar" else 0.04) * frame.unit
            return (bottom - space, -1) if below else (top + space, 1)
        case _:
            first = (room - min(long, room)) / 2
            return (middle + first, 1) if below else (middle - first, -1)


def _spots(style: BoardStyle, number: int, fit: int) -> tuple[list[float], float | None]:
    """Return where checkers lie in a stack, in steps, and where their number is written."""
    written: float | None = None
    if number <= fit:
        spots = [float(n) for n in range(number)]
        if number >= style.number_from:
            written = float(number - 1)
        return spots, written
    if style.tall == "overlap":
        return [n * (fit - 1) / (number - 1) for n in range(number)], None
    if style.tall == "layers":
        spots, left, layer = [], number, 0
        while left > 0 and layer < fit:
            some = min(left, fit - layer)
            spots += [n + layer / 2 for n in range(some)]
            left, layer = left - some, layer + 1
        # What finds no place even so is told by a number.
        return spots, None if left <= 0 else spots[-1]
    spots = [float(n) for n in range(fit)]
    where = {"top": fit - 1.0, "base": 0.0, "beyond": fit - 0.1}
    return spots, where[style.number_at]


def _lay(canvas: Image.Image, sprite: Image.Image, x: float, y: float) -> None:
    wide, high = sprite.size
    canvas.paste(sprite, (round(x - wide / 2), round(y - high / 2)), sprite)


def _sprites(style: BoardStyle, across: int, light: bool) -> Image.Image:
    colour, rim = (style.light, style.light_rim) if light else (style.dark, style.dark_rim)
    return _sprite(
        max(across, 4),
        colour,
        rim,
        style.rim,
        style.rings,
        style.shade,
        style.shadow,
        style.opacity,
    )


@lru_cache(maxsize=16)
def _sprite(
    across: int,
    colour: Rgb,
    rim_colour: Rgb,
    rim: float,
    rings: int,
    shade: float,
    shadow: float,
    opacity: float,
) -> Image.Image:
    """Draw a checker on nothing: a disc with edge, rings, light from the upper left, shadow."""
    from PIL import Image

    radius = across / 2
    side = across + 2 * max(1, round(across * 0.08))
    at = np.arange(side) - (side - 1) / 2
    right, down = np.meshgrid(at, at)
    far = np.hypot(right, down)

    def within(limit: float) -> NDArray[np.float64]:
        inner: NDArray[np.float64] = np.clip(limit - far + 0.5, 0, 1)
        return inner

    tone: Sequence[float] = colour
    paint = np.broadcast_to(np.array(tone, dtype=np.float64), (side, side, 3)).copy()
    if shade:
        lit = -(right + down) / (2 * radius)
        paint += (shade * 55 * lit)[..., None]
        gleam = np.exp(-((right + 0.35 * radius) ** 2 + (down + 0.4 * radius) ** 2) / radius**2 * 6)
        paint += (shade * 70 * gleam)[..., None]
        paint *= 1 - shade * 0.35 * np.clip(far / radius - 0.6, 0, 1)[..., None]
    edge = np.array(rim_colour, dtype=np.float64)
    for ring in range(rings):
        distance = radius * (0.75 - 0.22 * ring)
        line = np.clip(1.2 - np.abs(far - distance), 0, 1) * 0.5
        paint += (edge - paint) * line[..., None]
    if rim:
        border = (1 - within(radius - max(1.0, rim * radius)))[..., None]
        paint += (edge - paint) * border
    cover = within(radius) * opacity
    if shadow:
        off = np.hypot(right - 0.05 * across, down - 0.07 * across)
        dark = np.clip((radius - off) / (0.06 * across) + 0.5, 0, 1) * shadow
        under = dark * (1 - within(radius))
        whole = cover + under * (1 - cover)
        paint *= (cover / np.maximum(whole, 1e-6))[..., None]
        cover = whole
    pixels = np.dstack([paint.clip(0, 255), cover * 255]).round().astype(np.uint8)
    return Image.fromarray(pixels)
