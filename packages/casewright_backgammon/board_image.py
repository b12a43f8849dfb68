"""Drawing of backgammon boards with Pillow; ``board_layout`` describes the layout.

The same position and style give the same picture.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_extras import Sheet, draw_extras, draw_text
from casewright_backgammon.board_finish import add_grain, apply_effects
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
from casewright_backgammon.position import POINTS, Position, require_possible

if TYPE_CHECKING:
    from PIL import Image

#: Number of landmarks; see ``draw_board``.
LANDMARKS = 8


def render_board(
    position: Position, style: BoardStyle = PLAIN, own: Colour = "light", home: Home = "right"
) -> Image.Image:
    """Draw a board, with the player on roll below.

    Args:
        own: The colour of the player on roll.
        home: The side where that player bears off.

    Returns:
        An image of mode "RGB", ``style.width`` pixels wide plus margins; by default 720×520.

    Raises:
        InputError: The position is impossible, ``own`` or ``home`` is invalid, or the font cannot
            be read.
    """
    return draw_board(position, style, own, home)[0]


def board_png(
    position: Position, style: BoardStyle = PLAIN, own: Colour = "light", home: Home = "right"
) -> bytes:
    """Return the bytes of a PNG file of a board; see ``render_board``."""
    buffer = io.BytesIO()
    render_board(position, style, own, home).save(buffer, "PNG")
    return buffer.getvalue()


def draw_board(
    position: Position, style: BoardStyle, own: Colour = "light", home: Home = "right"
) -> tuple[Image.Image, NDArray[np.float64]]:
    """Draw a board, and return the image and its landmarks; see ``render_board``.

    Returns:
        The image, and the pixels (x, y) of eight landmarks, array (8, 2): the points where the
        field's left edge, the bar's left edge, the bar's right edge and the field's right edge meet
        the field's upper edge, and then those where they meet its lower edge.
    """
    checked_view(own, home)
    require_possible(position)
    sheet = _blank_sheet(style)
    _draw_field(sheet)
    labels = [point_of_slice(index, home) for index in range(POINTS)]
    draw_extras(sheet, labels, position.off, own, home)
    counts = signed_counts(position, own, home, own_bar_below=style.own_bar_below)
    for index, count in enumerate(counts):
        if count:
            _draw_stack(sheet, index, count)
    corners = np.array([(x, y) for y in (sheet.ys[0], sheet.ys[2]) for x in sheet.xs])
    return apply_effects(sheet.canvas, corners, style)


def _blank_sheet(style: BoardStyle) -> Sheet:
    """Return the frame of a board without its field."""
    from PIL import Image

    left, top, right, bottom = style.frames
    left_tray = style.tray + left if style.trays in ("left", "both") else 0.0
    right_tray = style.tray + right if style.trays in ("right", "both") else 0.0
    start = left_tray + left
    end = start + ROW + style.bar
    wide = end + right + right_tray
    unit = style.width * style.fine / wide
    trays = [(left, left + style.tray)] if left_tray else []
    if right_tray:
        trays.append((end + right, end + right + style.tray))
    size = (round(wide * unit), round((top + 2 * style.half + bottom) * unit))
    canvas = Image.new("RGB", size, style.frame)
    return Sheet(
        add_grain(canvas, style, 0.6) if style.grain else canvas,
        style,
        unit,
        (start * unit, (start + 6) * unit, (start + 6 + style.bar) * unit, end * unit),
        (top * unit, (top + style.half) * unit, (top + 2 * style.half) * unit),
        tuple((a * unit, b * unit) for a, b in trays),
    )


def _draw_field(sheet: Sheet) -> None:
    from PIL import Image

    style = sheet.style
    field = Image.new("RGB", sheet.canvas.size, style.field)
    if style.grain:
        field = add_grain(field, style, 1.0)
    left, bar_left, bar_right, right = sheet.xs
    top, _, bottom = sheet.ys
    for start, end in ((left, bar_left), (bar_right, right), *sheet.trays):
        box = (round(start), round(top), round(end), round(bottom))
        sheet.canvas.paste(field.crop(box), box[:2])
    sheet.pen.rectangle((bar_left, top, bar_right, bottom), fill=style.bar_colour)
    if style.outline:
        line = max(1, round(style.outline * sheet.unit))
        for start, end in ((left, right), (bar_left, bar_right)):
            edges = (start, top, end, bottom)
            sheet.pen.rectangle(edges, outline=_line_colour(style), width=line)
    _draw_points(sheet)


def _line_colour(style: BoardStyle) -> Rgb:
    return (20, 20, 20) if luminance(style.field) > 70 else (200, 200, 200)


def _draw_points(sheet: Sheet) -> None:
    from PIL import Image, ImageDraw

    style, size = sheet.style, sheet.canvas.size
    masks = [Image.new("1", size) for _ in style.points]
    shapes: list[list[list[tuple[float, float]]]] = [[], []]
    for index in range(POINTS):
        # The two colours alternate along a row, and opposite points differ.
        parity = (index + index // ROW) % 2
        shape = _point_outline(sheet, index)
        ImageDraw.Draw(masks[parity]).polygon(shape, fill=1)
        shapes[parity].append(shape)
    width = round(style.outline * sheet.unit)
    for parity, (mask, colour) in enumerate(zip(masks, style.points, strict=True)):
        if style.pattern == "plain" or parity == 0:
            fill = Image.new("RGB", size, colour)
            if style.grain:
                fill = add_grain(fill, style, 0.7)
            sheet.canvas.paste(fill, mask=mask)
        elif style.pattern == "hatched":
            sheet.canvas.paste(_hatched(sheet), mask=mask)
        if width or (style.pattern != "plain" and parity):
            for shape in shapes[parity]:
                sheet.pen.line(
                    [*shape, shape[0]],
                    fill=_line_colour(style) if width else colour,
                    width=max(width, 2),
                )


def _hatched(sheet: Sheet) -> Image.Image:
    from PIL import Image, ImageDraw

    style = sheet.style
    wide, high = sheet.canvas.size
    fill = Image.new("RGB", (wide, high), style.field)
    pen = ImageDraw.Draw(fill)
    step = max(3, round(sheet.unit * (0.12 + (style.seed % 7) * 0.03)))
    slant = high if style.seed % 2 else 0
    for start in range(-high, wide + high, step):
        pen.line((start, 0, start + slant, high), fill=style.points[1], width=max(1, step // 3))
    return fill


def _left_edge(sheet: Sheet, index: int) -> float:
    """Return the left edge of a slice."""
    if index >= POINTS:
        return (sheet.xs[1] + sheet.xs[2] - sheet.unit) / 2
    column = index % ROW
    return sheet.xs[0 if column < 6 else 2] + (column % 6) * sheet.unit


def _point_outline(sheet: Sheet, index: int) -> list[tuple[float, float]]:
    """Return the outline of a slice's point."""
    style = sheet.style
    base, inward = _stack_base(sheet, index)
    centre = _left_edge(sheet, index) + sheet.unit / 2
    height = style.length * style.half * sheet.unit
    steps = np.linspace(0, 1, 2 if style.taper == 1 else 9)
    narrow = style.blunt + (1 - style.blunt) * (1 - steps) ** style.taper
    widths = narrow * style.point_width * sheet.unit / 2
    ys = base + inward * steps * height
    left = zip(centre - widths, ys, strict=True)
    right = zip((centre + widths)[::-1], ys[::-1], strict=True)
    return [(float(x), float(y)) for x, y in (*left, *right)]


def _stack_base(sheet: Sheet, index: int) -> tuple[float, int]:
    """Return the y of the edge where a stack begins, and its direction: 1 for down, -1 for up."""
    below = index < ROW or index == LOWER_BAR
    return (sheet.ys[2], -1) if below else (sheet.ys[0], 1)


def _draw_stack(sheet: Sheet, index: int, count: int) -> None:
    style, unit = sheet.style, sheet.unit
    across = style.size * unit
    x = _left_edge(sheet, index) + unit / 2
    number = abs(count)
    if index in (LOWER_BAR, UPPER_BAR):
        # The bar may be narrower than a checker, and there is less space for stacks.
        across = min(across, max(style.bar * 1.1, 0.6) * unit)
        fit = min(style.fit, max(1, int(style.half * unit / across)) - 1)
        start, direction = _bar_start(sheet, index, min(number, fit) * across)
    else:
        fit = style.fit
        edge, direction = _stack_base(sheet, index)
        start = edge + direction * style.gap * unit
    step = across * style.spacing
    sprite = _sprite(style, max(round(across), 4), count > 0)
    spots, number_spot = _spots(style, number, max(fit, 1))
    for spot in spots:
        y = start + direction * (across / 2 + spot * step)
        corner = (round(x - sprite.width / 2), round(y - sprite.height / 2))
        sheet.canvas.paste(sprite, corner, sprite)
    if number_spot is not None:
        y = start + direction * (across / 2 + number_spot * step)
        on_checker = number_spot <= max(spots)
        colour = style.light if count > 0 else style.dark
        ink = style.ink
        if on_checker:
            ink = (10, 10, 10) if luminance(colour) > 110 else (245, 245, 245)
        height = (0.62 if number < 10 else 0.54) * across
        draw_text(sheet, (x, y), str(number), height, ink, boxed=not on_checker)


def _bar_start(sheet: Sheet, index: int, height: float) -> tuple[float, int]:
    """Return the y where a stack on the bar begins, and its direction: 1 for down, -1 for up."""
    style = sheet.style
    top, middle, bottom = sheet.ys
    below = index == LOWER_BAR
    room = bottom - middle
    match style.bar_from:
        case "middle":
            space = 0.05 * sheet.unit + (0.5 * sheet.unit if style.cube == "bar" else 0.0)
            return (middle + space, 1) if below else (middle - space, -1)
        case "edge":
            space = (0.6 if style.cube == "bar" else 0.04) * sheet.unit
            return (bottom - space, -1) if below else (top + space, 1)
        case _:
            first = (room - min(height, room)) / 2
            return (middle + first, 1) if below else (middle - first, -1)


def _spots(style: BoardStyle, number: int, fit: int) -> tuple[list[float], float | None]:
    """Return the offsets of a stack's checkers, and of its written number, if any, in steps."""
    if number <= fit:
        spots = [float(n) for n in range(number)]
        return spots, float(number - 1) if number >= style.number_from else None
    if style.tall == "overlap":
        return [n * (fit - 1) / (number - 1) for n in range(number)], None
    if style.tall == "layers":
        pyramid = [n + layer / 2 for layer in range(fit) for n in range(fit - layer)]
        spots = pyramid[:number]
        # A number replaces the checkers that do not fit on the point.
        return spots, None if number <= len(pyramid) else spots[-1]
    spots = [float(n) for n in range(fit)]
    number_spots = {"top": fit - 1.0, "base": 0.0, "beyond": fit - 0.1}
    return spots, number_spots[style.number_at]


@lru_cache(maxsize=16)
def _sprite(style: BoardStyle, across: int, light: bool) -> Image.Image:
    """Return a checker on a transparent background, with edge, rings, shading and shadow."""
    from PIL import Image

    colour, rim_colour = (style.light, style.light_rim) if light else (style.dark, style.dark_rim)
    radius = across / 2
    side = across + 2 * max(1, round(across * 0.08))
    axis = np.arange(side) - (side - 1) / 2
    right, down = np.meshgrid(axis, axis)
    distance = np.hypot(right, down)

    def within(limit: float) -> NDArray[np.float64]:
        """Return the share of each pixel that is nearer to the middle than a limit."""
        share: NDArray[np.float64] = np.clip(limit - distance + 0.5, 0, 1)
        return share

    paint = np.broadcast_to(np.array(colour, dtype=np.float64), (side, side, 3)).copy()
    if style.shade:
        lit = -(right + down) / (2 * radius)
        paint += (style.shade * 55 * lit)[..., None]
        gleam = np.exp(-((right + 0.35 * radius) ** 2 + (down + 0.4 * radius) ** 2) / radius**2 * 6)
        paint += (style.shade * 70 * gleam)[..., None]
        paint *= 1 - style.shade * 0.35 * np.clip(distance / radius - 0.6, 0, 1)[..., None]
    edge = np.array(rim_colour, dtype=np.float64)
    for ring in range(style.rings):
        ring_radius = radius * (0.75 - 0.22 * ring)
        line = np.clip(1.2 - np.abs(distance - ring_radius), 0, 1) * 0.5
        paint += (edge - paint) * line[..., None]
    if style.rim:
        border = (1 - within(radius - max(1.0, style.rim * radius)))[..., None]
        paint += (edge - paint) * border
    cover = within(radius) * style.opacity
    if style.shadow:
        shadow_distance = np.hypot(right - 0.05 * across, down - 0.07 * across)
        shadow = np.clip((radius - shadow_distance) / (0.06 * across) + 0.5, 0, 1) * style.shadow
        total = cover + shadow * (1 - within(radius)) * (1 - cover)
        paint *= (cover / np.maximum(total, 1e-6))[..., None]
        cover = total
    pixels = np.dstack([paint.clip(0, 255), cover * 255]).round().astype(np.uint8)
    return Image.fromarray(pixels)
