"""Training batches of the board reader: boards are drawn once, and torch augments them.

Drawing a board takes about 50 milliseconds, too long for a training step. So a pool has two images
of each board: a view of the whole picture for the landmark network, and a rectified board for the
checker network. Each batch is a random sample, whose images are moved, stretched and recoloured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_image import LANDMARK_COUNT, draw_board
from casewright_backgammon.board_layout import SLICE_COUNT, signed_counts
from casewright_backgammon.board_positions import random_positions
from casewright_backgammon.board_slices import (
    RECTIFIED,
    SLICE,
    VIEW,
    rectify_board,
    slice_starts,
    view_of,
    whole_box,
)
from casewright_backgammon.board_style import luminance, random_style
from casewright_backgammon.non_boards import TRAINING_KINDS, draw_non_board
from casewright_backgammon.position import CHECKERS

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

#: Width and height of the pool's views, which are larger than the views of a batch.
POOL_VIEW = (VIEW[0] * 3 // 2, VIEW[1] * 3 // 2)
#: Numbers of boards in a batch of slices, and of boards and other pictures in a batch of views.
BOARD_COUNT, BOARD_VIEW_COUNT, OTHER_VIEW_COUNT = 16, 22, 10


@dataclass(frozen=True, slots=True)
class Pool:
    """Images of n boards and of m pictures without a board; their levels are from 0 to 255."""

    views: NDArray[np.uint8]  # views of whole pictures of boards (n, 192, 240, 3)
    landmarks: NDArray[np.float32]  # landmarks in these views, in pixels (n, 8, 2)
    others: NDArray[np.uint8]  # views of pictures without a board (m, 192, 240, 3)
    boards: NDArray[np.uint8]  # rectified boards (n, 184, 276, 3)
    #: Classes of the slices (n, 26): 0 for no checker, 1 to 15 for 1 to 15 light checkers, 16 to 30
    #: for 1 to 15 dark checkers.
    classes: NDArray[np.int64]
    checker_colours: NDArray[np.float32]  # colours of light and dark checkers (n, 2, 3)


def draw_pool(
    rng: np.random.Generator,
    fonts: list[Path | None],
    board_count: int,
    other_count: int,
    advance: Callable[[int], None],
) -> Pool:
    """Draw a pool of boards and of other pictures; ``advance(1)`` is called for each picture."""
    pool = Pool(
        np.empty((board_count, POOL_VIEW[1], POOL_VIEW[0], 3), dtype=np.uint8),
        np.empty((board_count, LANDMARK_COUNT, 2), dtype=np.float32),
        np.empty((other_count, POOL_VIEW[1], POOL_VIEW[0], 3), dtype=np.uint8),
        np.empty((board_count, RECTIFIED[1], RECTIFIED[0], 3), dtype=np.uint8),
        np.empty((board_count, SLICE_COUNT), dtype=np.int64),
        np.empty((board_count, 2, 3), dtype=np.float32),
    )
    positions = random_positions(rng)
    for row in range(board_count):
        style = random_style(rng, fonts)
        position = next(positions)
        image, landmarks = draw_board(position, style)
        box = whole_box(image.size)
        pool.views[row] = view_of(image, box, POOL_VIEW)
        pool.landmarks[row] = (landmarks - box[:2]) * (POOL_VIEW[0] / (box[2] - box[0]))
        pool.boards[row] = rectify_board(image, landmarks)
        # The player on roll has the light checkers.
        counts = signed_counts(position, "light", "right", own_bar_below=style.own_bar_below)
        pool.classes[row] = [count if count >= 0 else CHECKERS - count for count in counts]
        pool.checker_colours[row] = style.light, style.dark
        advance(1)
    for row in range(other_count):
        image = draw_non_board(TRAINING_KINDS, rng)
        pool.others[row] = view_of(image, whole_box(image.size), POOL_VIEW)
        advance(1)
    return pool


def sample_slices(pool: Pool, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return random boards' slices (16, 26, 3, 96, 24) with levels from 0 to 1, and the classes."""
    import torch
    from torch.nn import functional

    rows = rng.integers(len(pool.boards), size=BOARD_COUNT)
    boards = _recolour(_tensor(pool.boards[rows]), pool.checker_colours[rows], rng)
    # The reader finds inexact landmarks. So boards are moved, stretched and slanted. The upper
    # half, the lower half and the slices of a board are also moved separately.
    sample_points = np.empty((BOARD_COUNT, SLICE_COUNT, SLICE[1], SLICE[0], 2), dtype=np.float32)
    board_shift = rng.normal(0, 1, (BOARD_COUNT, 2)) * (1.6, 1.3)
    y_scale, x_scale = rng.normal(1, 0.015, (BOARD_COUNT, 1)), rng.normal(1, 0.03, (BOARD_COUNT, 1))
    slope = rng.normal(0, 0.008, (BOARD_COUNT, 1))
    slice_shift = rng.normal(0, 1, (BOARD_COUNT, SLICE_COUNT, 2)) * (0.5, 0.5)
    half_shift = rng.normal(0, 1, (BOARD_COUNT, 2)) * (0.7, 0.7)
    # The centres of a slice's pixels, relative to its middle.
    down = np.arange(SLICE[1]) + 0.5 - SLICE[1] / 2
    across = np.arange(SLICE[0]) + 0.5 - SLICE[0] / 2
    for index, (left, top, is_flipped) in enumerate(slice_starts()):
        x_shift, y_shift = board_shift.T + slice_shift[:, index].T
        y_shift = y_shift + half_shift[:, int(is_flipped)]
        ys = top + SLICE[1] / 2 + down * y_scale + y_shift[:, None]
        xs = left + SLICE[0] / 2 + across * x_scale + x_shift[:, None]
        if is_flipped:
            ys = ys[:, ::-1]
        slant = slope * (ys - RECTIFIED[1] / 2)
        sample_points[:, index, :, :, 0] = xs[:, None, :] + slant[:, :, None]
        sample_points[:, index, :, :, 1] = ys[:, :, None]
    grid = torch.from_numpy(sample_points.reshape(BOARD_COUNT, SLICE_COUNT * SLICE[1], SLICE[0], 2))
    grid = grid * torch.tensor([2 / RECTIFIED[0], 2 / RECTIFIED[1]]) - 1
    slices = functional.grid_sample(boards, grid, padding_mode="border", align_corners=False)
    slices = slices.reshape(BOARD_COUNT, 3, SLICE_COUNT, SLICE[1], SLICE[0])
    return slices.transpose(1, 2).contiguous(), torch.from_numpy(pool.classes[rows])


def sample_views(pool: Pool, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return a random batch for the landmark network.

    Returns:
        Views (32, 3, 128, 160) with levels from 0 to 1, landmarks (32, 8, 2) in pixels, and labels
        (32): 1 if the view shows a whole board, else 0. Landmarks are valid only if the label is 1.
    """
    import torch
    from torch.nn import functional

    rows = rng.integers(len(pool.views), size=BOARD_VIEW_COUNT)
    other_rows = rng.integers(len(pool.others), size=OTHER_VIEW_COUNT)
    pictures = np.concatenate([pool.views[rows], pool.others[other_rows]])
    count = len(pictures)
    no_landmarks = np.zeros((OTHER_VIEW_COUNT, LANDMARK_COUNT, 2))
    landmarks = np.concatenate([pool.landmarks[rows], no_landmarks])
    boxes, is_whole = np.empty((count, 4)), np.empty(count, dtype=bool)
    for row in range(count):
        boxes[row], is_whole[row] = _random_box(landmarks[row], row < BOARD_VIEW_COUNT, rng)
    sizes = boxes[:, 2:] - boxes[:, :2]
    down, across = (np.arange(VIEW[1]) + 0.5) / VIEW[1], (np.arange(VIEW[0]) + 0.5) / VIEW[0]
    grid = np.empty((count, VIEW[1], VIEW[0], 2), dtype=np.float32)
    xs = boxes[:, 0, None] + across * sizes[:, 0, None]
    ys = boxes[:, 1, None] + down * sizes[:, 1, None]
    grid[..., 0] = xs[:, None, :] / POOL_VIEW[0] * 2 - 1
    grid[..., 1] = ys[:, :, None] / POOL_VIEW[1] * 2 - 1
    # A picture without a board gets colours that allow every order of the channels.
    white_and_black = np.tile([[[255.0] * 3, [0.0] * 3]], (OTHER_VIEW_COUNT, 1, 1))
    checker_colours = np.concatenate([pool.checker_colours[rows], white_and_black])
    # Parts of a view outside its picture are 0 after ``grid_sample``, so 0 must be grey.
    tensors = _recolour(_tensor(pictures), checker_colours, rng) - 0.5
    views = functional.grid_sample(tensors, torch.from_numpy(grid), align_corners=False) + 0.5
    view_landmarks = (landmarks - boxes[:, None, :2]) * (np.array(VIEW) / sizes[:, None]) - 0.5
    return views, torch.from_numpy(view_landmarks).float(), torch.from_numpy(is_whole).float()


def _random_box(
    landmarks: NDArray[np.float64], has_board: bool, rng: np.random.Generator
) -> tuple[NDArray[np.float64], bool]:
    """Return a random box in a view of the pool, and True if the box contains a whole board."""
    half_size = np.array(POOL_VIEW) / 2
    if not has_board:
        middle = half_size + rng.uniform(-20, 20, 2)
        half_box = half_size * rng.uniform(0.5, 1.1)
        return np.concatenate([middle - half_box, middle + half_box]), False
    low, high = landmarks.min(axis=0), landmarks.max(axis=0)
    chance = rng.random()
    if chance < 0.55:
        is_whole = chance >= 0.08
        if is_whole:
            # The box is like the reader's closer views of a board that the first view located.
            margins = rng.normal(0.09, 0.035, 4).clip(0.02, 0.2)
        else:
            # The box cuts off a tenth to a half of the board, on one side.
            margins = rng.uniform(0, 0.2, 4)
            margins[int(rng.integers(4))] = -rng.uniform(0.1, 0.5)
        margins *= np.tile(high - low, 2)
        return np.concatenate([low - margins[:2], high + margins[2:]]), is_whole
    half_box = half_size * rng.uniform(0.95, 1.2)
    middle = half_size + rng.uniform(-0.04, 0.04, 2) * POOL_VIEW
    start, end = np.minimum(middle - half_box, low - 2), np.maximum(middle + half_box, high + 2)
    return np.concatenate([start, end]), True


def _tensor(pictures: NDArray[np.uint8]) -> Tensor:
    import torch

    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


def _recolour(pictures: Tensor, colours: NDArray[np.float32], rng: np.random.Generator) -> Tensor:
    """Return pictures (n, 3, h, w) with random colours; dark checkers stay the darker ones."""
    import torch

    count = len(pictures)
    channel_orders = np.tile(np.arange(3), (count, 1))
    for row in np.flatnonzero(rng.random(count) < 0.4):
        order = rng.permutation(3)
        light, dark = colours[row][:, order]
        if luminance(tuple(light)) > luminance(tuple(dark)) + 45:
            channel_orders[row] = order
    pairs = zip(pictures, channel_orders, strict=True)
    permuted = torch.stack([picture[torch.from_numpy(order)] for picture, order in pairs])
    contrast = rng.uniform(0.8, 1.15, (count, 1, 1, 1)) * rng.uniform(0.92, 1.08, (count, 3, 1, 1))
    brightness = rng.uniform(-0.08, 0.08, (count, 1, 1, 1))
    levels = permuted * torch.from_numpy(contrast).float() + torch.from_numpy(brightness).float()
    return levels.clamp(0, 1)
