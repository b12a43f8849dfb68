"""Effects on drawn boards: grain, scale, margins, perspective, blur, noise and compression."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_extras import random_words
from casewright_backgammon.board_style import BoardStyle, luminance
from casewright_mcbr.fonts import font_of

if TYPE_CHECKING:
    from PIL import Image

#: Points in an image, in pixels (n, 2).
Points = NDArray[np.float64]


def add_grain(image: Image.Image, style: BoardStyle, factor: float) -> Image.Image:
    """Return an image with grain of wood or cloth, of ``factor`` times the style's strength."""
    from PIL import Image, ImageChops

    if not style.grain:
        return image
    width, height = image.size
    rng = np.random.default_rng(style.seed)
    cell = max(2.0, height / 120)
    rows, columns = round(height / cell) + 1, max(2, round(width / cell / style.stretch))
    levels = 128 + 40 * style.grain * factor * rng.standard_normal((rows, columns))
    small = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    cloud = small.resize(image.size, Image.Resampling.BILINEAR)
    return ImageChops.overlay(image, Image.merge("RGB", [cloud] * 3))


def apply_effects(
    canvas: Image.Image, landmarks: Points, style: BoardStyle
) -> tuple[Image.Image, Points]:
    """Return the picture of a board after the style's effects, and the landmarks in the picture.

    The canvas, on which ``landmarks`` lie, is ``style.supersampling`` times as large as the board.
    """
    from PIL import Image, ImageFilter

    scale = 1 / style.supersampling
    size = (round(canvas.width * scale), round(canvas.height * scale))
    if style.supersampling != 1:
        canvas = canvas.resize(size, Image.Resampling.BOX)
        landmarks = landmarks * scale
    rng = np.random.default_rng(style.seed + 1)
    left, top, right, bottom = (round(share * size[0]) for share in style.margins)
    if left or top or right or bottom:
        picture = Image.new("RGB", (size[0] + left + right, size[1] + top + bottom), style.ground)
        _draw_surroundings(picture, size[0], style, rng)
        picture.paste(canvas, (left, top))
        canvas, landmarks = picture, landmarks + np.array((left, top))
    if style.rotation or any(style.perspective):
        canvas, landmarks = _tilt(canvas, landmarks, style)
    if style.blur:
        canvas = canvas.filter(ImageFilter.GaussianBlur(style.blur * size[0] / 600))
    if style.noise:
        levels = np.asarray(canvas, dtype=np.float32)
        levels = levels + style.noise * rng.standard_normal(levels.shape, dtype=np.float32)
        canvas = Image.fromarray(levels.clip(0, 255).round().astype(np.uint8))
    if style.jpeg:
        buffer = io.BytesIO()
        canvas.save(buffer, "JPEG", quality=style.jpeg)
        canvas = Image.open(buffer)
        canvas.load()
    return canvas, landmarks


def perspective_coefficients(source: Points, target: Points) -> NDArray[np.float64]:
    """Return the coefficients (8) with which Pillow maps points ``source`` to ``target`` (4, 2)."""
    rows = []
    for (x, y), (source_x, source_y) in zip(target, source, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -source_x * x, -source_x * y])
        rows.append([0, 0, 0, x, y, 1, -source_y * x, -source_y * y])
    coefficients = np.linalg.solve(np.array(rows), source.reshape(-1))
    return np.asarray(coefficients, dtype=np.float64)


def _tilt(image: Image.Image, landmarks: Points, style: BoardStyle) -> tuple[Image.Image, Points]:
    """Return a rotated image in perspective, and the landmarks in this image."""
    from PIL import Image

    width, height = image.size
    source = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
    angle = np.deg2rad(style.rotation)
    rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    middle = source.mean(axis=0)
    target = (source - middle) @ rotation.T + middle
    target = target + np.array(style.perspective).reshape(4, 2) * width
    tilted = image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        perspective_coefficients(source, target).tolist(),
        Image.Resampling.BILINEAR,
        fillcolor=style.ground,
    )
    # Pillow's formula maps target points to source points. The landmarks need the opposite.
    matrix = np.append(perspective_coefficients(target, source), 1.0).reshape(3, 3)
    homogeneous = np.column_stack([landmarks, np.ones(len(landmarks))]) @ matrix.T
    return tilted, homogeneous[:, :2] / homogeneous[:, 2:]


def _draw_surroundings(
    picture: Image.Image, board_width: int, style: BoardStyle, rng: np.random.Generator
) -> None:
    """Draw random texts and panels on a picture, before a board covers the middle."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(picture)
    ink = (20, 20, 20) if luminance(style.ground) > 110 else (230, 230, 230)
    for _ in range(style.texts):
        x, y = int(rng.integers(picture.width)), int(rng.integers(picture.height))
        if rng.random() < 0.3:
            size = int(rng.integers(10, max(11, picture.width // 4)))
            fill = tuple(int(level) for level in rng.integers(0, 256, 3))
            pen.rectangle((x, y, x + size, y + size // 3), fill=fill, outline=ink)
            continue
        height = max(7, round(board_width * float(rng.uniform(0.015, 0.04))))
        text = random_words(rng)
        pen.text((x, y), text, fill=ink, font=font_of(style.font, height), anchor="mm")
