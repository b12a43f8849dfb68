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
    ROW_SLICES,
    UPPER_BAR,
    Colour,
    Home,
    check_view,
    point_of_slice,
    signed_counts,
)
from casewright_backgammon.board_style import PLAIN, BoardStyle, Rgb, luminance
from casewright_backgammon.position import POINTS, Position, require_possible

if TYPE_CHECKING:
    from PIL import Image

#: Number of landmarks of a board; see ``draw_board``.
LANDMARK_COUNT = 8


def render_board(
    position: Position, style: BoardStyle = PLAIN, own: Colour = "light", home: Home = "right"
) -> Image.Image:
    """Return the picture of a board, with the player on roll below.

    Args:
        own: The colour of the player on roll.
        home: The side where the player on roll bears off.

    Returns:
        An image of mode "RGB", ``style.width`` pixels wide plus margins; by default 720×520.

    Raises:
        InputError: The position is impossible, ``own`` or ``home`` is invalid, or the font cannot
            be read.
    """
    return draw_board(position, style, own, home)[0]


def board_png(position: Position) -> bytes:
    """Return the picture of a board in the plain style, as a PNG file."""
    buffer = io.BytesIO()
    render_board(position).save(buffer, "PNG")
    return buffer.getvalue()


def draw_board(
    position: Position, style: BoardStyle, own: Colour = "light", home: Home = "right"
) -> tuple[Image.Image, NDArray[np.float64]]:
    """Return the picture of a board and its landmarks; see ``render_board``.

    Returns:
        The image, and the pixels (x, y) of eight landmarks, array (8, 2). The upper edge of the
        field has four: the left end, the left and the right edge of the bar, and the right end.
        The other four are the same places on the lower edge.
    """
    check_view(own, home)
    require_possible(position)
    sheet = _blank_sheet(style)
    _draw_field(sheet)
    labels = [point_of_slice(index, home) for index in range(POINTS)]
    draw_extras(sheet, labels, position.off, own, home)
    counts = signed_counts(position, own, home, own_bar_below=style.own_bar_below)
    for index, count in enumerate(counts):
        if count:
            _draw_stack(sheet, index, count)
    landmarks = np.array([(x, y) for y in (sheet.ys[0], sheet.ys[2]) for x in sheet.xs])
    return apply_effects(sheet.canvas, landmarks, style)


def _blank_sheet(style: BoardStyle) -> Sheet:
    """Return a sheet with the frame of a board, before the field is drawn."""
    from PIL import Image

    # Lengths are in widths of a slice here, and are multiplied by ``unit`` below.
    left, top, right, bottom = style.frames
    has_left_tray = style.trays in ("left", "both")
    has_right_tray = style.trays in ("right", "both")
    start = left + (left + style.tray if has_left_tray else 0)
    end = start + ROW_SLICES + style.bar
    width = end + right + (right + style.tray if has_right_tray else 0)
    unit = style.width * style.supersampling / width
    trays = [(left, left + style.tray)] if has_left_tray else []
    if has_right_tray:
        trays.append((end + right, end + right + style.tray))
    size = (round(width * unit), round((top + 2 * style.half_height + bottom) * unit))
    return Sheet(
        add_grain(Image.new("RGB", size, style.frame), style, factor=0.6),
        style,
        unit,
        (start * unit, (start + 6) * unit, (start + 6 + style.bar) * unit, end * unit),
        (top * unit, (top + style.half_height) * unit, (top + 2 * style.half_height) * unit),
        tuple((a * unit, b * unit) for a, b in trays),
    )


def _draw_field(sheet: Sheet) -> None:
    from PIL import Image

    style = sheet.style
    field = add_grain(Image.new("RGB", sheet.canvas.size, style.field), style, factor=1.0)
    left, bar_left, bar_right, right = sheet.xs
    top, _, bottom = sheet.ys
    for start, end in ((left, bar_left), (bar_right, right), *sheet.trays):
        box = (round(start), round(top), round(end), round(bottom))
        sheet.canvas.paste(field.crop(box), box[:2])
    sheet.pen.rectangle((bar_left, top, bar_right, bottom), fill=style.bar_colour)
    if style.outline:
        line_width = max(1, round(style.outline * sheet.unit))
        for start, end in ((left, right), (bar_left, bar_right)):
            edges = (start, top, end, bottom)
            sheet.pen.rectangle(edges, outline=_line_colour(style), width=line_width)
    _draw_points(sheet)


def _line_colour(style: BoardStyle) -> Rgb:
    return (20, 20, 20) if luminance(style.field) > 70 else (200, 200, 200)


def _draw_points(sheet: Sheet) -> None:
    from PIL import Image, ImageDraw

    style, size = sheet.style, sheet.canvas.size
    line_width = round(style.outline * sheet.unit)
    for parity, colour in enumerate(style.points):
        # The two colours alternate along a row, and opposite points differ.
        indices = [index for index in range(POINTS) if (index + index // ROW_SLICES) % 2 == parity]
        outlines = [_point_outline(sheet, index) for index in indices]
        mask = Image.new("1", size)
        for outline in outlines:
            ImageDraw.Draw(mask).polygon(outline, fill=1)
        if style.pattern == "plain" or parity == 0:
            fill = add_grain(Image.new("RGB", size, colour), style, factor=0.7)
            sheet.canvas.paste(fill, mask=mask)
        elif style.pattern == "hatched":
            sheet.canvas.paste(_hatching(sheet), mask=mask)
        if line_width or (style.pattern != "plain" and parity):
            ink = _line_colour(style) if line_width else colour
            for outline in outlines:
                sheet.pen.line([*outline, outline[0]], fill=ink, width=max(line_width, 2))


def _hatching(sheet: Sheet) -> Image.Image:
    """Return an image with parallel lines in the second colour of points."""
    from PIL import Image, ImageDraw

    style = sheet.style
    width, height = sheet.canvas.size
    image = Image.new("RGB", (width, height), style.field)
    pen = ImageDraw.Draw(image)
    step = max(3, round(sheet.unit * (0.12 + (style.seed % 7) * 0.03)))
    slant = height if style.seed % 2 else 0
    for x in range(-height, width + height, step):
        pen.line((x, 0, x + slant, height), fill=style.points[1], width=max(1, step // 3))
    return image


def _left_edge(sheet: Sheet, index: int) -> float:
    """Return the left edge of a slice."""
    if index >= POINTS:
        return (sheet.xs[1] + sheet.xs[2] - sheet.unit) / 2
    column = index % ROW_SLICES
    return sheet.xs[0 if column < 6 else 2] + (column % 6) * sheet.unit


def _point_outline(sheet: Sheet, index: int) -> list[tuple[float, float]]:
    """Return the outline of a slice's point."""
    style = sheet.style
    base, direction = _stack_base(sheet, index)
    centre = _left_edge(sheet, index) + sheet.unit / 2
    height = style.point_length * style.half_height * sheet.unit
    shares = np.linspace(0, 1, 2 if style.taper == 1 else 9)
    widths = style.blunt + (1 - style.blunt) * (1 - shares) ** style.taper
    half_widths = widths * style.point_width * sheet.unit / 2
    ys = base + direction * shares * height
    left = zip(centre - half_widths, ys, strict=True)
    right = zip((centre + half_widths)[::-1], ys[::-1], strict=True)
    return [(float(x), float(y)) for x, y in (*left, *right)]


def _stack_base(sheet: Sheet, index: int) -> tuple[float, int]:
    """Return the y of the edge where a stack begins, and the stack's direction: 1 down, -1 up."""
    return (sheet.ys[2], -1) if index < ROW_SLICES else (sheet.ys[0], 1)


def _draw_stack(sheet: Sheet, index: int, signed_count: int) -> None:
    style, unit = sheet.style, sheet.unit
    diameter = style.diameter * unit
    x = _left_edge(sheet, index) + unit / 2
    count = abs(signed_count)
    if index in (LOWER_BAR, UPPER_BAR):
        # The bar may be narrower than a checker, and there is less space for stacks.
        diameter = min(diameter, max(style.bar * 1.1, 0.6) * unit)
        fit = min(style.fit, max(1, int(style.half_height * unit / diameter)) - 1)
        start, direction = _bar_start(sheet, index, min(count, fit) * diameter)
    else:
        fit = style.fit
        edge, direction = _stack_base(sheet, index)
        start = edge + direction * style.gap * unit
    step = diameter * style.spacing
    checker = _checker(style, max(round(diameter), 4), signed_count > 0)
    offsets, number_offset = _offsets(style, count, max(fit, 1))
    for offset in offsets:
        y = start + direction * (diameter / 2 + offset * step)
        corner = (round(x - checker.width / 2), round(y - checker.height / 2))
        sheet.canvas.paste(checker, corner, checker)
    if number_offset is not None:
        y = start + direction * (diameter / 2 + number_offset * step)
        is_on_checker = number_offset <= max(offsets)
        colour = style.light if signed_count > 0 else style.dark
        ink = style.ink
        if is_on_checker:
            ink = (10, 10, 10) if luminance(colour) > 110 else (245, 245, 245)
        height = (0.62 if count < 10 else 0.54) * diameter
        draw_text(sheet, (x, y), str(count), height, ink, has_box=not is_on_checker)


def _bar_start(sheet: Sheet, index: int, stack_height: float) -> tuple[float, int]:
    """Return the y where a stack on the bar begins, and the stack's direction: 1 down, -1 up."""
    style = sheet.style
    top, middle, bottom = sheet.ys
    is_lower = index == LOWER_BAR
    if style.bar_from == "edge":
        space = (0.6 if style.cube == "bar" else 0.04) * sheet.unit
        return (bottom - space, -1) if is_lower else (top + space, 1)
    if style.bar_from == "middle":
        space = 0.05 * sheet.unit + (0.5 * sheet.unit if style.cube == "bar" else 0.0)
    else:
        space = (bottom - middle - min(stack_height, bottom - middle)) / 2
    return (middle + space, 1) if is_lower else (middle - space, -1)


def _offsets(style: BoardStyle, count: int, fit: int) -> tuple[list[float], float | None]:
    """Return the offsets, in steps, of a stack's checkers, and of the stack's number, if any."""
    if count <= fit:
        offsets = [float(n) for n in range(count)]
        return offsets, float(count - 1) if count >= style.number_from else None
    if style.tall == "overlap":
        return [n * (fit - 1) / (count - 1) for n in range(count)], None
    if style.tall == "layers":
        pyramid = [n + layer / 2 for layer in range(fit) for n in range(fit - layer)]
        offsets = pyramid[:count]
        # A number replaces the checkers that do not fit on the point.
        return offsets, None if count <= len(pyramid) else offsets[-1]
    number_offsets = {"top": fit - 1.0, "base": 0.0, "beyond": fit - 0.1}
    return [float(n) for n in range(fit)], number_offsets[style.number_at]


@lru_cache(maxsize=16)
def _checker(style: BoardStyle, diameter: int, is_light: bool) -> Image.Image:
    """Return a checker on a transparent background, with edge, rings, shading and shadow."""
    from PIL import Image

    colour = style.light if is_light else style.dark
    rim = np.array(style.light_rim if is_light else style.dark_rim, dtype=np.float64)
    radius = diameter / 2
    side = diameter + 2 * max(1, round(diameter * 0.08))
    axis = np.arange(side) - (side - 1) / 2
    right, down = np.meshgrid(axis, axis)
    distance = np.hypot(right, down)

    def inside(circle_radius: float) -> NDArray[np.float64]:
        """Return the share of each pixel that is inside a circle around the checker's middle."""
        share: NDArray[np.float64] = np.clip(circle_radius - distance + 0.5, 0, 1)
        return share

    paint = np.tile(np.array(colour, dtype=np.float64), (side, side, 1))
    if style.shade:
        # Light from the upper left, with a highlight.
        paint += (style.shade * 55 * (-(right + down) / (2 * radius)))[..., None]
        gleam = np.exp(-((right + 0.35 * radius) ** 2 + (down + 0.4 * radius) ** 2) / radius**2 * 6)
        paint += (style.shade * 70 * gleam)[..., None]
        paint *= 1 - style.shade * 0.35 * np.clip(distance / radius - 0.6, 0, 1)[..., None]
    for ring in range(style.rings):
        line = np.clip(1.2 - np.abs(distance - radius * (0.75 - 0.22 * ring)), 0, 1) * 0.5
        paint += (rim - paint) * line[..., None]
    if style.rim:
        paint += (rim - paint) * (1 - inside(radius - max(1.0, style.rim * radius)))[..., None]
    alpha = inside(radius) * style.opacity
    if style.shadow:
        shadow_distance = np.hypot(right - 0.05 * diameter, down - 0.07 * diameter)
        shadow = np.clip((radius - shadow_distance) / (0.06 * diameter) + 0.5, 0, 1) * style.shadow
        total_alpha = alpha + shadow * (1 - inside(radius)) * (1 - alpha)
        paint *= (alpha / np.maximum(total_alpha, 1e-6))[..., None]
        alpha = total_alpha
    pixels = np.dstack([paint.clip(0, 255), alpha * 255]).round().astype(np.uint8)
    return Image.fromarray(pixels)
