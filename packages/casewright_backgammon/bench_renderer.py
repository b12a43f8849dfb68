"""A second renderer of boards, with matplotlib, in the style of printed diagrams.

It has no code, geometry or style in common with the renderer for training, and is not used for
training or thresholds: with it the bench measures the reader on boards of another program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import DependencyError
from casewright_backgammon.position import BAR, POINTS, Position

if TYPE_CHECKING:
    from PIL import Image

#: Height of the field and length of a point; the unit is a checker's width.
HIGH, LONG = 12.2, 4.9
#: Maximum number of checkers that are drawn in a stack; a taller stack shows its number.
MOST = 5


@dataclass(frozen=True, slots=True)
class Look:
    """The style of printed boards; colours and hatches have matplotlib's names.

    Attributes:
        odd: Colour of every other point.
        even: Colour of the other points.
        hatch: Pattern on the even points.
        paper: Colour of the field.
        light: Colour of the player on roll's checkers.
        dark: Colour of the other player's checkers.
        edge: Colour of lines.
        numbered: True to number the points.
        middle: Width of the bar.
        dots: Pixels per inch; the board is 8 inches wide.
        family: The font family.
        caption: A line of text under the board.
    """

    odd: str = "white"
    even: str = "silver"
    hatch: str = ""
    paper: str = "white"
    light: str = "white"
    dark: str = "black"
    edge: str = "black"
    numbered: bool = True
    middle: float = 1.0
    dots: int = 80
    family: str = "DejaVu Serif"
    caption: bool = False


LOOKS: dict[str, Look] = {
    "grey": Look(),
    "hatched": Look(even="white", hatch="////", dots=100, caption=True),
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
        numbered=False,
        middle=0.7,
        dots=60,
        family="cmss10",
    ),
}


def render(position: Position, look: Look) -> Image.Image:
    """Return the image of a board, of mode "RGB".

    The player on roll sits below, bears off on the right and has the lighter checkers.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyError(
            "The second renderer needs matplotlib. Run: pip install 'casewright[plot]'"
        ) from error
    from PIL import Image

    wide = 12 + look.middle
    figure = Figure(figsize=(8, 8 * (HIGH + 2.2) / (wide + 1.2)), dpi=look.dots)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.6, wide + 0.6)
    axes.set_ylim(-1.3, HIGH + 0.9)
    axes.set_axis_off()
    _field(axes, look)
    for point in range(1, POINTS + 1):
        mine, others = position.own[point - 1], position.other[POINTS - point]
        x, low = _place(point, look)
        if count := mine or others:
            _stack(axes, x, 0.52 if low else HIGH - 0.52, low, count, bool(mine), look)
    middle = 6 + look.middle / 2
    _stack(axes, middle, HIGH / 2 - 1.1, False, position.own[BAR], True, look)
    _stack(axes, middle, HIGH / 2 + 1.1, True, position.other[BAR], False, look)
    if look.caption:
        text = "White to move. Position after the opening."
        _write(axes, wide / 2, -1.05, text, look, size=10)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _place(point: int, look: Look) -> tuple[float, bool]:
    """Return the middle of a point, and True if it is in the lower half."""
    low = point <= POINTS // 2
    column = 12 - point if low else point - 13
    return column + 0.5 + (look.middle if column >= 6 else 0), low


def _field(axes: Any, look: Look) -> None:
    from matplotlib.patches import Polygon, Rectangle

    wide = 12 + look.middle
    outer = Rectangle((0, 0), wide, HIGH, facecolor=look.paper, edgecolor=look.edge, linewidth=2)
    axes.add_patch(outer)
    for point in range(1, POINTS + 1):
        x, low = _place(point, look)
        base, tip = (0.0, LONG) if low else (HIGH, HIGH - LONG)
        odd = point % 2 == 1
        axes.add_patch(
            Polygon(
                [(x - 0.5, base), (x + 0.5, base), (x, tip)],
                facecolor=look.odd if odd else look.even,
                edgecolor=look.edge,
                hatch="" if odd else look.hatch,
                linewidth=0.8,
            )
        )
        if look.numbered:
            _write(axes, x, -0.4 if low else HIGH + 0.4, str(point), look, size=9)
    for x in (6, 6 + look.middle):
        axes.plot([x, x], [0, HIGH], color=look.edge, linewidth=1.5)


def _stack(
    axes: Any, x: float, start: float, up: bool, count: int, light: bool, look: Look
) -> None:
    from matplotlib.patches import Circle

    face = look.light if light else look.dark
    for number in range(min(count, MOST)):
        y = start + (number if up else -number)
        disc = Circle((x, y), 0.46, facecolor=face, edgecolor=look.edge, linewidth=1.4, zorder=3)
        axes.add_patch(disc)
        if number == MOST - 1 and count > MOST:
            ink = "black" if light else "white"
            _write(axes, x, y, str(count), look, size=13, color=ink, zorder=4)


def _write(axes: Any, x: float, y: float, text: str, look: Look, **style: Any) -> None:
    axes.text(x, y, text, ha="center", va="center", family=look.family, **style)
