"""The networks' inputs from a picture: a small view, and the slices of a rectified board."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_finish import perspective_coefficients
from casewright_backgammon.board_layout import ROW_SLICES, SLICE_COUNT, UPPER_BAR
from casewright_backgammon.position import POINTS

if TYPE_CHECKING:
    from PIL import Image

#: The landmarks (8, 2) of a board, in pixels; see ``board_image.draw_board``.
Landmarks = NDArray[np.float64]
#: A box in a picture: left, top, right, bottom, in pixels; it may extend beyond the picture.
Box = tuple[float, float, float, float]

#: Width and height of the landmark network's input, in pixels.
VIEW = (160, 128)
#: Lengths of a rectified board, in pixels: width of a point, height of half the field, margin.
UNIT, HALF_HEIGHT, MARGIN = 20, 84, 8
#: Width and height of a rectified board.
RECTIFIED = (13 * UNIT + 2 * MARGIN, 2 * HALF_HEIGHT + 2 * MARGIN)
#: Width and height of the checker network's input: a slice with a margin.
SLICE = (24, 96)
#: Margins of a slice: at its left and right, and beyond the upper or lower edge of the field.
_SIDE_MARGIN, _EDGE_MARGIN = (SLICE[0] - UNIT) // 2, 4


def whole_box(size: tuple[int, int]) -> Box:
    """Return the smallest box around a whole picture that has the proportions of a view."""
    width, height = size
    scale = max(width / VIEW[0], height / VIEW[1])
    half_width, half_height = VIEW[0] * scale / 2, VIEW[1] * scale / 2
    left, top = width / 2 - half_width, height / 2 - half_height
    return left, top, width / 2 + half_width, height / 2 + half_height


def board_box(landmarks: Landmarks, margin_share: float) -> Box:
    """Return the box around landmarks, with a margin that is a share of the landmarks' extent."""
    low, high = landmarks.min(axis=0), landmarks.max(axis=0)
    pad = margin_share * (high - low)
    return low[0] - pad[0], low[1] - pad[1], high[0] + pad[0], high[1] + pad[1]


def view_of(image: Image.Image, box: Box, size: tuple[int, int] = VIEW) -> NDArray[np.uint8]:
    """Return the part of a picture in a box, scaled to ``size``, array (height, width, 3).

    Parts of the box outside the picture are grey.
    """
    from PIL import Image

    left, top, right, bottom = box
    across, down = size[0] / (right - left), size[1] / (bottom - top)
    inside = (max(left, 0.0), max(top, 0.0), min(right, image.width), min(bottom, image.height))
    view = Image.new("RGB", size, (128, 128, 128))
    if inside[2] - inside[0] < 1 or inside[3] - inside[1] < 1:
        return np.asarray(view)
    start = (round((inside[0] - left) * across), round((inside[1] - top) * down))
    end = (round((inside[2] - left) * across), round((inside[3] - top) * down))
    part_size = max(end[0] - start[0], 1), max(end[1] - start[1], 1)
    view.paste(image.resize(part_size, Image.Resampling.BILINEAR, box=inside), start)
    return np.asarray(view)


def rectify_board(image: Image.Image, landmarks: Landmarks) -> NDArray[np.uint8]:
    """Return the board in a picture of mode "RGB", rectified to fixed sizes, array (184, 276, 3).

    In the result, the parts of the field on both sides of the bar are 120 pixels wide and 168 high,
    the bar is 20 wide, and the margin is 8.
    """
    from PIL import Image

    # The transform skips pixels of a large picture. So the picture is scaled down first, and the
    # board is computed at twice the returned size.
    width = float(np.hypot(*(landmarks[3] - landmarks[0])))
    scale = min(1.0, 13 * UNIT * 2.4 / max(width, 1.0))
    if scale < 1:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        landmarks = landmarks * (size[0] / image.width, size[1] / image.height)
        image = image.resize(size, Image.Resampling.BOX, reducing_gap=None)
    edges = [MARGIN, MARGIN + 6 * UNIT, MARGIN + 7 * UNIT, MARGIN + 13 * UNIT]
    starts = [0, *edges[1:3], RECTIFIED[0]]
    top, bottom = MARGIN, MARGIN + 2 * HALF_HEIGHT
    board = Image.new("RGB", (2 * RECTIFIED[0], 2 * RECTIFIED[1]))
    # The field left of the bar, the bar, and the field right of the bar are transformed separately.
    for part in range(3):
        source = landmarks[[part, part + 1, part + 5, part + 4]]
        left, right = edges[part], edges[part + 1]
        target = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
        target = 2.0 * (target - (starts[part], 0))
        rectified = image.transform(
            (2 * (starts[part + 1] - starts[part]), 2 * RECTIFIED[1]),
            Image.Transform.PERSPECTIVE,
            perspective_coefficients(source, target).tolist(),
            Image.Resampling.BILINEAR,
            fillcolor=(128, 128, 128),
        )
        board.paste(rectified, (2 * starts[part], 0))
    return np.asarray(board.reduce(2))


def slice_starts() -> list[tuple[int, int, bool]]:
    """Return each slice's left and upper edge in a rectified board, and True if it is flipped.

    The upper slices are flipped, so that every stack begins at the lower edge. They are not
    rotated, because a rotated 6 looks like a 9.
    """
    starts = []
    for index in range(SLICE_COUNT):
        column = index % ROW_SLICES
        # The bar is the middle column of 13.
        column = 6 if index >= POINTS else column + int(column >= 6)
        is_upper = ROW_SLICES <= index < POINTS or index == UPPER_BAR
        top = MARGIN - _EDGE_MARGIN if is_upper else RECTIFIED[1] - MARGIN + _EDGE_MARGIN - SLICE[1]
        starts.append((MARGIN + UNIT * column - _SIDE_MARGIN, top, is_upper))
    return starts


def slices_of(board: NDArray[np.uint8], shift: tuple[int, int]) -> NDArray[np.float32]:
    """Return the slices of a rectified board, levels from 0 to 1, array (26, 3, 96, 24).

    The slices are moved by ``shift``: pixels to the right and down, at most 4.
    """
    slices = []
    for left, top, is_flipped in slice_starts():
        x, y = left + shift[0], top + shift[1]
        pixels = board[y : y + SLICE[1], x : x + SLICE[0]]
        slices.append(pixels[::-1] if is_flipped else pixels)
    return np.stack(slices).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
