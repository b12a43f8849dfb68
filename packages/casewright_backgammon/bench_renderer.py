"""A second renderer of boards, with matplotlib, in the style of printed diagrams.

It shares no code, geometry or style with the renderer for training, and neither the training nor
the choice of thresholds uses this renderer. So the bench measures the reader on unknown drawings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import DependencyError
from casewright_backgammon.position import BAR, POINTS, Position

if TYPE_CHECKING:
    from PIL import Image

#: Height of the field, and length of a point, both in widths of a checker.
FIELD_HEIGHT, POINT_LENGTH = 12.2, 4.9
#: Maximum number of drawn checkers in a stack; taller stacks show their numbers.
MAX_DRAWN = 5


@dataclass(frozen=True, slots=True)
class Look:
    """The style of printed boards; colours and hatches have matplotlib's names."""

    odd: str = "white"  # colour of the points with odd numbers
    even: str = "silver"  # colour of the points with even numbers
    hatch: str = ""  # pattern on the points with even numbers
    paper: str = "white"  # colour of the field
    light: str = "white"  # colour of the checkers of the player on roll
    dark: str = "black"  # colour of the other player's checkers
    edge: str = "black"  # colour of lines
    has_numbers: bool = True  # True to number the points
    bar: float = 1.0  # width of the bar, in widths of a checker
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
    """Return the image of a board, of mode "RGB"; ``DependencyError`` without matplotlib.

    The player on roll sits below, bears off on the right and has the lighter checkers.
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
    _field(axes, look)
    for point in range(1, POINTS + 1):
        own, other = position.own[point - 1], position.other[POINTS - point]
        x, is_low = _point_centre(point, look)
        start = 0.52 if is_low else FIELD_HEIGHT - 0.52
        _stack(axes, x, start, is_low, own or other, bool(own), look)
    bar_x = 6 + look.bar / 2
    _stack(axes, bar_x, FIELD_HEIGHT / 2 - 1.1, False, position.own[BAR], True, look)
    _stack(axes, bar_x, FIELD_HEIGHT / 2 + 1.1, True, position.other[BAR], False, look)
    if look.has_caption:
        caption = "White to move. Position after the opening."
        _write(axes, width / 2, -1.05, caption, look, size=10)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _point_centre(point: int, look: Look) -> tuple[float, bool]:
    """Return the x coordinate of a point's centre, and True if it is in the lower half."""
    is_low = point <= POINTS // 2
    column = 12 - point if is_low else point - 13
    return column + 0.5 + (look.bar if column >= 6 else 0), is_low


def _field(axes: Any, look: Look) -> None:
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
            _write(axes, x, -0.4 if is_low else FIELD_HEIGHT + 0.4, str(point), look, size=9)
    for x in (6, 6 + look.bar):
        axes.plot([x, x], [0, FIELD_HEIGHT], color=look.edge, linewidth=1.5)


def _stack(
    axes: Any, x: float, start: float, is_upward: bool, count: int, is_light: bool, look: Look
) -> None:
    """Draw a stack of ``count`` checkers (or none) from the height ``start`` up or down."""
    from matplotlib.patches import Circle

    face = look.light if is_light else look.dark
    for number in range(min(count, MAX_DRAWN)):
        y = start + (number if is_upward else -number)
        disc = Circle((x, y), 0.46, facecolor=face, edgecolor=look.edge, linewidth=1.4, zorder=3)
        axes.add_patch(disc)
        if number == MAX_DRAWN - 1 and count > MAX_DRAWN:
            ink = "black" if is_light else "white"
            _write(axes, x, y, str(count), look, size=13, color=ink, zorder=4)


def _write(axes: Any, x: float, y: float, text: str, look: Look, **style: Any) -> None:
    axes.text(x, y, text, ha="center", va="center", family=look.family, **style)
