"""A second renderer of boards, with matplotlib, in the style of printed diagrams.

It shares no code, geometry or style with the renderer for training. Neither the training of the
board reader nor the choice of its thresholds uses this second renderer, so the bench measures the
reader on unknown drawings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import DependencyError
from casewright_backgammon.position import BAR, POINTS, Position

if TYPE_CHECKING:
    from PIL import Image

#: Height of the field, and length of a point, both in widths of a point.
FIELD_HEIGHT, POINT_LENGTH = 12.2, 4.9
#: Maximum number of drawn checkers in a stack; a taller stack shows its number of checkers.
MAX_DRAWN = 5


@dataclass(frozen=True, slots=True)
class Look:
    """The style of a printed board; colours and ``hatch`` are in matplotlib's notation."""

    odd: str = "white"  # colour of the points with odd numbers
    even: str = "silver"  # colour of the points with even numbers
    hatch: str = ""  # pattern on the points with even numbers
    paper: str = "white"  # colour of the field
    light: str = "white"  # colour of the checkers of the player on roll
    dark: str = "black"  # colour of the other player's checkers
    edge: str = "black"  # colour of lines
    has_numbers: bool = True  # True to number the points
    bar: float = 1.0  # width of the bar, in widths of a point
    dots: int = 80  # pixels per inch; the board is 8 inches wide
    family: str = "DejaVu Serif"  # font family
    has_caption: bool = False  # True for a line of text under the board


LOOKS: dict[str, Look] = {
    "grey": Look(),
    "hatched": Look(even="white", hatch="////", dots=100, has_caption=True),
    "brown": Look(
        odd="tan", even="saddlebrown", paper="cornsilk", light="ivory", dark="firebrick", dots=70
    ),
    "green": Look(
        odd="palegoldenrod",
        even="darkgreen",
        paper="mediumseagreen",
        light="whitesmoke",
        dark="navy",
        edge="dimgray",
        has_numbers=False,
        bar=0.7,
        dots=60,
        family="cmss10",
    ),
}


def render(position: Position, look: Look) -> Image.Image:
    """Return a picture of a board, an image of mode "RGB".

    The player on roll sits below, bears off on the right and has the lighter checkers. Raise
    ``DependencyError`` if matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyError(
            "The second renderer needs matplotlib. Run: pip install 'casewright[plot]'"
        ) from error
    from PIL import Image

    width = 12 + look.bar
    figure = Figure(figsize=(8, 8 * (FIELD_HEIGHT + 2.2) / (width + 1.2)), dpi=look.dots)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.6, width + 0.6)
    axes.set_ylim(-1.3, FIELD_HEIGHT + 0.9)
    axes.set_axis_off()
    _draw_field(axes, look)
    for point in range(1, POINTS + 1):
        own, other = position.own[point - 1], position.other[POINTS - point]
        x, is_low = _point_centre(point, look)
        start = 0.52 if is_low else FIELD_HEIGHT - 0.52
        _draw_stack(axes, x, start, own or other, look, is_upward=is_low, is_light=bool(own))
    x, middle = 6 + look.bar / 2, FIELD_HEIGHT / 2
    _draw_stack(axes, x, middle - 1.1, position.own[BAR], look, is_upward=False, is_light=True)
    _draw_stack(axes, x, middle + 1.1, position.other[BAR], look, is_upward=True, is_light=False)
    if look.has_caption:
        caption = "White to move. Position after the opening."
        _draw_text(axes, width / 2, -1.05, caption, look, size=10)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _point_centre(point: int, look: Look) -> tuple[float, bool]:
    """Return the x coordinate of a point's centre, and True if it is in the lower half."""
    is_low = point <= POINTS // 2
    column = 12 - point if is_low else point - 13
    return column + 0.5 + (look.bar if column >= 6 else 0), is_low


def _draw_field(axes: Any, look: Look) -> None:
    from matplotlib.patches import Polygon, Rectangle

    width = 12 + look.bar
    outer = Rectangle(
        (0, 0), width, FIELD_HEIGHT, facecolor=look.paper, edgecolor=look.edge, linewidth=2
    )
    axes.add_patch(outer)
    for point in range(1, POINTS + 1):
        x, is_low = _point_centre(point, look)
        base, tip = (0.0, POINT_LENGTH) if is_low else (FIELD_HEIGHT, FIELD_HEIGHT - POINT_LENGTH)
        corners = [(x - 0.5, base), (x + 0.5, base), (x, tip)]
        face, hatch = (look.odd, "") if point % 2 else (look.even, look.hatch)
        axes.add_patch(
            Polygon(corners, facecolor=face, edgecolor=look.edge, hatch=hatch, linewidth=0.8)
        )
        if look.has_numbers:
            _draw_text(axes, x, -0.4 if is_low else FIELD_HEIGHT + 0.4, str(point), look, size=9)
    for x in (6, 6 + look.bar):
        axes.plot([x, x], [0, FIELD_HEIGHT], color=look.edge, linewidth=1.5)


def _draw_stack(
    axes: Any, x: float, start: float, count: int, look: Look, *, is_upward: bool, is_light: bool
) -> None:
    """Draw ``count`` checkers, 0 or more; the middle of the first is at the height ``start``."""
    from matplotlib.patches import Circle

    face = look.light if is_light else look.dark
    for number in range(min(count, MAX_DRAWN)):
        y = start + (number if is_upward else -number)
        disc = Circle((x, y), 0.46, facecolor=face, edgecolor=look.edge, linewidth=1.4, zorder=3)
        axes.add_patch(disc)
        if number == MAX_DRAWN - 1 and count > MAX_DRAWN:
            ink = "black" if is_light else "white"
            _draw_text(axes, x, y, str(count), look, size=13, color=ink, zorder=4)


def _draw_text(axes: Any, x: float, y: float, text: str, look: Look, **style: Any) -> None:
    axes.text(x, y, text, ha="center", va="center", family=look.family, **style)
