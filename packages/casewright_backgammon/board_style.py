"""Styles of drawn boards: the default style, and random styles."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BoardStyle:
    """The style of a board; the defaults are the style that users see.

    Lengths are in widths of a slice (the place of one point), unless another unit is given.
    """

    width: int = 720  # width of the board with its frame, in pixels
    supersampling: int = 2  # the board is drawn this many times larger, against jagged edges
    light: Rgb = (243, 235, 219)  # colour of the lighter checkers
    dark: Rgb = (92, 38, 32)  # colour of the darker checkers
    light_rim: Rgb = (174, 156, 128)  # colour of the edge of the lighter checkers
    dark_rim: Rgb = (48, 17, 14)  # colour of the edge of the darker checkers
    points: tuple[Rgb, Rgb] = ((200, 169, 122), (128, 96, 66))  # colours of the points, alternating
    field: Rgb = (231, 217, 188)  # colour behind the points
    frame: Rgb = (74, 54, 40)  # colour of the frame
    bar_colour: Rgb = (92, 69, 51)  # colour of the bar
    ink: Rgb = (238, 228, 208)  # colour of numbers and texts
    ground: Rgb = (255, 255, 255)  # colour around the frame
    diameter: float = 0.92  # diameter of a checker
    spacing: float = 1.0  # distance of checkers in a stack, in diameters
    gap: float = 0.03  # distance from a point's base to its first checker
    fit: int = 5  # number of checkers that fit on a point
    half_height: float = 5.1  # height of half the field
    bar: float = 1.05  # width of the bar
    #: Width of the frame: left, top, right, bottom.
    frames: tuple[float, float, float, float] = (0.45, 0.5, 0.45, 0.5)
    point_length: float = 0.84  # length of a point, as a share of half_height
    taper: float = 1.0  # shape of a point: the power by which it narrows; 1 is a triangle
    blunt: float = 0.0  # width of a point's tip, as a share of its base
    point_width: float = 0.98  # width of a point's base
    pattern: str = "plain"  # points of the second colour: "plain", "hatched" or "outlined"
    outline: float = 0.0  # width of lines around points
    rim: float = 0.1  # width of a checker's edge, as a share of its radius
    rings: int = 1  # circles on a checker
    shade: float = 0.25  # shading of a checker, from 0 (flat) to 1 (round)
    shadow: float = 0.35  # darkness of a checker's shadow, from 0 to 1
    opacity: float = 1.0  # opacity of checkers, from 0 (invisible) to 1
    tall: str = "number"  # form of stacks that do not fit: "number", "overlap" or "layers"
    #: Position of a stack's number: on the "top" or the "base" checker, or "beyond" the stack.
    number_at: str = "top"
    number_from: int = 16  # the smallest number that is written on a stack
    #: Stacks on the bar begin at its "middle" or its "edge", or are in the "centre" of its halves.
    bar_from: str = "middle"
    own_bar_below: bool = True  # True if the player on roll has the lower half of the bar
    trays: str = "right"  # trays of borne-off checkers: "none", "left", "right" or "both"
    tray: float = 1.1  # width of a tray
    off: str = "edge"  # form of borne-off checkers: seen from the "edge", a "number" or "none"
    has_labels: bool = True  # True to number the points
    has_hinges: bool = False  # True to draw hinges on the bar
    dice: str = "none"  # position of the dice: "none", "halves", "bar" or "tray"
    cube: str = "none"  # position of the doubling cube: "none", "bar", "tray" or "field"
    texts: int = 0  # number of lines of text around the board
    grain: float = 0.0  # strength of the grain of wood or cloth, from 0 to 1
    stretch: float = 1.0  # ratio of width to height of the grain
    noise: float = 0.0  # standard deviation of noise, in levels of 0 to 255
    blur: float = 0.0  # radius of a blur, in pixels
    jpeg: int = 0  # quality of JPEG compression; 0 for none
    rotation: float = 0.0  # rotation in degrees
    perspective: tuple[float, ...] = (0.0,) * 8  # shifts (x, y) of the corners, as shares of width
    #: Margins of the ground around the board, as shares of its width: left, top, right, bottom.
    margins: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    font: Path | None = None  # a font file; None for the font that comes with Pillow
    seed: int = 0  # random seed of dice, texts, grain and noise


PLAIN = BoardStyle()


def luminance(colour: Rgb) -> float:
    """Return the luminance of a colour, from 0 to 255."""
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


def random_style(rng: np.random.Generator, fonts: Sequence[Path | None] = (None,)) -> BoardStyle:
    """Return a random style with one of the fonts; ``None`` is Pillow's default font."""
    style = _with_random_shapes(rng, _random_colours(rng))
    fit = int(rng.choice([4, 5, 5, 5, 5, 5, 5, 6, 7]))
    stack_height = fit * (style.diameter * style.spacing) + style.gap
    half_height = max(stack_height + _between(rng, -0.05, 1.6), 4.0)
    return replace(
        style,
        fit=fit,
        half_height=half_height,
        width=int(np.exp(rng.uniform(np.log(290), np.log(820)))),
        supersampling=1 if rng.random() < 0.15 else 2,
        noise=_between(rng, 0, 9) if rng.random() < 0.25 else 0.0,
        blur=_between(rng, 0, 0.9) if rng.random() < 0.3 else 0.0,
        jpeg=int(rng.integers(35, 96)) if rng.random() < 0.4 else 0,
        rotation=_between(rng, -2, 2) if rng.random() < 0.25 else 0.0,
        perspective=tuple(rng.uniform(-0.02, 0.02, 8).tolist())
        if rng.random() < 0.15
        else (0.0,) * 8,
        margins=_four(rng, 0, 0.25) if rng.random() < 0.4 else _four(rng, 0, 0.03),
        font=fonts[int(rng.integers(len(fonts)))] if fonts else None,
        seed=int(rng.integers(2**31)),
    )


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def _four(rng: np.random.Generator, low: float, high: float) -> tuple[float, float, float, float]:
    left, top, right, bottom = rng.uniform(low, high, 4).tolist()
    return left, top, right, bottom


def _pick(rng: np.random.Generator, **weights: float) -> str:
    """Return one of the names at random, with probabilities in proportion to the weights."""
    values = np.array(list(weights.values()))
    return str(rng.choice(list(weights), p=values / values.sum()))


def _with_random_shapes(rng: np.random.Generator, style: BoardStyle) -> BoardStyle:
    """Return a style with random sizes, shapes and parts, and the colours of ``style``."""
    tall = _pick(rng, number=0.55, overlap=0.25, layers=0.2)
    is_flat = rng.random() < 0.45
    # Overlapping checkers can only be counted if they have an edge.
    rim = _between(rng, 0.04, 0.25) if tall != "number" or rng.random() < 0.75 else 0.0
    if _has_low_contrast(style):
        rim = max(rim, 0.06)
    frames = _four(rng, 0.05, 0.9)
    if rng.random() < 0.4:
        frames = (*frames[:2], *frames[:2])
    elif rng.random() < 0.2:
        frames = _four(rng, 0.6, 2.2)
    return replace(
        style,
        diameter=_between(rng, 0.75, 1.0),
        spacing=1.0 if rng.random() < 0.6 else _between(rng, 0.96, 1.06),
        gap=_between(rng, 0, 0.12),
        bar=_between(rng, 0.5, 1.6) if rng.random() < 0.8 else _between(rng, 1.6, 2.3),
        frames=frames,
        point_length=_between(rng, 0.6, 1.0),
        taper=1.0 if rng.random() < 0.7 else _between(rng, 0.4, 1.8),
        blunt=0.0 if rng.random() < 0.7 else _between(rng, 0.0, 0.9),
        point_width=_between(rng, 0.75, 1.0),
        pattern=_pick(rng, plain=0.8, hatched=0.12, outlined=0.08),
        outline=_between(rng, 0.015, 0.08) if rng.random() < 0.35 else 0.0,
        rim=rim,
        rings=int(rng.integers(0, 4)) if rng.random() < 0.4 else 0,
        shade=0.0 if is_flat else _between(rng, 0.1, 1.0),
        shadow=0.0 if rng.random() < 0.5 else _between(rng, 0.1, 0.7),
        opacity=1.0 if rng.random() < 0.78 else _between(rng, 0.5, 1.0),
        tall=tall,
        number_at=_pick(rng, top=0.65, base=0.2, beyond=0.15),
        number_from=int(rng.integers(2, 6)) if rng.random() < 0.12 else 16,
        bar_from=_pick(rng, middle=0.45, edge=0.25, centre=0.3),
        own_bar_below=bool(rng.random() < 0.5),
        trays=_pick(rng, none=0.4, right=0.3, left=0.1, both=0.2),
        tray=_between(rng, 0.7, 1.8),
        off=_pick(rng, edge=0.5, number=0.3, none=0.2),
        has_labels=bool(rng.random() < 0.5),
        has_hinges=bool(rng.random() < 0.15),
        dice=_pick(rng, none=0.4, halves=0.45, bar=0.08, tray=0.07),
        cube=_pick(rng, none=0.4, bar=0.25, tray=0.25, field=0.1),
        texts=int(rng.integers(1, 9)) if rng.random() < 0.35 else 0,
        grain=_between(rng, 0.1, 1) if rng.random() < 0.35 else 0.0,
        stretch=_between(rng, 1, 12),
    )


def _has_low_contrast(style: BoardStyle) -> bool:
    """Return True if a checker's colour is close to a background colour."""
    return any(
        max(abs(a - b) for a, b in zip(checker, background, strict=True)) < 70
        for checker in (style.light, style.dark)
        for background in (style.field, style.bar_colour, *style.points)
    )


def _random_colours(rng: np.random.Generator) -> BoardStyle:
    """Return a style with random colours."""
    is_printed = rng.random() < 0.25
    light = _random_light_colour(rng)
    dark = _random_dark_colour(rng, luminance(light))
    field = _random_colour(rng)
    points = (_random_colour(rng), _random_colour(rng))
    frame, bar_colour = _random_colour(rng), _random_colour(rng)
    if is_printed:
        # Printed boards have lines, and few shades of grey.
        paper, *greys = sorted(rng.choice([255, 250, 235, 220, 190, 160, 120, 80, 0], 5))[::-1]
        field = frame = bar_colour = _grey(paper)
        points = (_grey(greys[0]), _grey(greys[int(rng.integers(1, 4))]))
        if rng.random() < 0.6:
            light, dark = _grey(rng.integers(225, 256)), _grey(rng.integers(0, 130))
        if rng.random() < 0.4:
            points = (_random_colour(rng), _random_colour(rng))
    elif rng.random() < 0.3:
        bar_colour = frame
    light_rim = _rim_colour(rng, light, is_printed)
    return BoardStyle(
        light=light,
        dark=dark,
        light_rim=light_rim,
        dark_rim=_rim_colour(rng, dark, is_printed) if rng.random() < 0.7 else light_rim,
        points=points if rng.random() < 0.5 else points[::-1],
        field=field,
        frame=frame,
        bar_colour=bar_colour if rng.random() < 0.7 else field,
        ink=_grey(0 if luminance(frame) > 128 else 255)
        if rng.random() < 0.8
        else _random_colour(rng),
        ground=_grey(255 if rng.random() < 0.5 else rng.integers(256))
        if rng.random() < 0.6
        else _random_colour(rng),
    )


def _grey(level: int | np.integer) -> Rgb:
    return int(level), int(level), int(level)


def _random_colour(rng: np.random.Generator) -> Rgb:
    if rng.random() < 0.2:
        return _grey(rng.integers(256))
    if rng.random() < 0.35:
        # Colours of wood, leather and cloth.
        hue, saturation = rng.uniform(0.02, 0.13), rng.uniform(0.2, 0.8)
    else:
        hue, saturation = rng.uniform(), rng.uniform(0.1, 1)
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, rng.uniform(0.12, 1))
    return round(red * 255), round(green * 255), round(blue * 255)


def _random_light_colour(rng: np.random.Generator) -> Rgb:
    if rng.random() < 0.5:
        level, warmth = rng.integers(205, 256), rng.uniform(0, 40)
        return int(level), int(level - warmth / 3), int(level - warmth)
    while luminance(colour := _random_colour(rng)) <= 90:
        pass
    return colour


def _random_dark_colour(rng: np.random.Generator, light_luminance: float) -> Rgb:
    """Return a random colour for dark checkers, clearly darker than the light checkers."""
    if rng.random() < 0.35 and light_luminance > 90:
        return _grey(rng.integers(0, 50))
    while True:
        colour = _random_colour(rng)
        if rng.random() < 0.3:
            colour = (colour[0] // 2, colour[1] // 2, colour[2] // 2)
        if luminance(colour) < light_luminance - 65:
            return colour


def _rim_colour(rng: np.random.Generator, colour: Rgb, is_printed: bool) -> Rgb:
    """Return a random colour for the edge of checkers, different from the checkers' colour."""
    if is_printed or rng.random() < 0.3:
        return _grey(0 if luminance(colour) > 70 else rng.integers(110, 256))
    target = 0 if luminance(colour) > 80 and rng.random() < 0.8 else 255
    share = rng.uniform(0.3, 0.8)
    red, green, blue = (round(level + (target - level) * share) for level in colour)
    return red, green, blue
