"""Training of the board reader on drawn boards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import InputError
from casewright.stores.encoders.onnx_export import write_metadata
from casewright.stores.progress import progress_bar
from casewright_backgammon.board_batches import Pool, draw_pool, sample_slices, sample_views
from casewright_backgammon.board_layout import SLICE_COUNT
from casewright_backgammon.board_measures import choose_thresholds, measure
from casewright_backgammon.board_reader import CHECKERS_FILE, LANDMARKS_FILE
from casewright_backgammon.board_slices import SLICE, VIEW
from casewright_mcbr.fonts import training_fonts
from casewright_mcbr.training import export_batched, train_one_cycle

if TYPE_CHECKING:
    from torch import Tensor

    from casewright_backgammon.board_network import CheckerNetwork, LandmarkNetwork

#: The maximum learning rate of both networks.
MAX_RATE = 4e-3
#: Numbers of boards, of pictures without a board, and of training steps of each network.
BOARD_COUNT, NON_BOARD_COUNT, LANDMARK_STEPS, CHECKER_STEPS = 5000, 900, 1100, 1700
#: Standard deviation of a landmark's target heat map, in cells of the map.
SPREAD = 0.8


def train_board_reader(
    folder: Path,
    *,
    seed: int = 0,
    boards: int = BOARD_COUNT,
    others: int = NON_BOARD_COUNT,
    landmark_steps: int = LANDMARK_STEPS,
    checker_steps: int = CHECKER_STEPS,
    measured: int = 150,
) -> dict[str, float]:
    """Train the networks that read boards, and write them as ONNX files.

    The boards have random styles and positions. The same arguments give the same files on one
    machine.

    Args:
        folder: The folder for ``landmarks.onnx`` and ``checkers.onnx``; it may not exist yet.
        seed: Random seed of weights, positions and styles.
        boards: Number of boards; 15 are drawn per second on one core.
        others: Number of pictures without a board.
        landmark_steps: Number of steps, of 32 views each; one core takes 3 steps per second.
        checker_steps: Number of steps, each of 16 boards' slices; one core takes 1.7 per second.
        measured: Number of boards that determine the thresholds, and of new boards to measure.

    Returns:
        The figures of ``board_measures.measure``.

    Raises:
        InputError: A number of pictures or steps is below 1, or the folder is a file.
        DependencyError: matplotlib, which has the fonts of the boards, is not installed.
    """
    from casewright_backgammon.board_network import LandmarkPositions
    from casewright_mcbr.blocks_network import Probabilities

    if min(boards, others, landmark_steps, checker_steps, measured) < 1:
        raise InputError("Training needs at least 1 picture and 1 step.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Give the folder for the networks' files.")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    fonts: list[Path | None] = [None, *training_fonts()]
    with progress_bar("Drawing boards", boards + others) as advance:
        pool = draw_pool(rng, fonts, boards, others, advance)
    landmarks = _train_landmarks(pool, seed, landmark_steps)
    network, shape = LandmarkPositions(landmarks), (3, VIEW[1], VIEW[0])
    export_batched(network, shape, folder / LANDMARKS_FILE, "views", ["landmarks", "board"])
    checkers = Probabilities(_train_checkers(pool, seed, checker_steps))
    slices_shape = (SLICE_COUNT, 3, SLICE[1], SLICE[0])
    export_batched(checkers, slices_shape, folder / CHECKERS_FILE, "slices", ["probabilities"])
    for file_name, thresholds in choose_thresholds(folder, seed=seed + 1, count=measured).items():
        write_metadata(folder / file_name, thresholds)
    return measure(folder, seed=seed + 2, count=measured)


def _train_landmarks(pool: Pool, seed: int, steps: int) -> LandmarkNetwork:
    from casewright_backgammon.board_network import LandmarkNetwork

    rng = np.random.default_rng([seed, 1])

    def loss(network: LandmarkNetwork) -> Tensor:
        views, landmarks, board_labels = sample_views(pool, rng)
        maps, board_logits = network(views)
        return _landmark_loss(network, maps, board_logits, landmarks, board_labels)

    label = "Training the landmark network"
    return train_one_cycle(LandmarkNetwork, loss, MAX_RATE, steps, seed, label, progress=None)


def _landmark_loss(
    network: LandmarkNetwork, maps: Tensor, board_logits: Tensor, landmarks: Tensor, labels: Tensor
) -> Tensor:
    """Return the sum of three losses: of heat maps, of landmarks, and of the logits of boards."""
    import torch
    from torch.nn import functional

    from casewright_backgammon.board_network import CELL

    has_board = labels == 1
    maps, landmarks = maps[has_board], landmarks[has_board]
    distances = (network.cell_centres - landmarks.unsqueeze(2)).square().sum(-1)
    targets = torch.softmax(-distances / (2 * (SPREAD * CELL) ** 2), dim=-1)
    map_loss = -(targets * functional.log_softmax(maps, dim=-1)).sum(-1).mean()
    landmark_loss = functional.smooth_l1_loss(network.landmarks(maps), landmarks)
    board_loss = functional.binary_cross_entropy_with_logits(board_logits, labels)
    return map_loss + landmark_loss + board_loss


def _train_checkers(pool: Pool, seed: int, steps: int) -> CheckerNetwork:
    from torch.nn import functional

    from casewright_backgammon.board_network import CheckerNetwork

    rng = np.random.default_rng([seed, 2])

    def loss(network: CheckerNetwork) -> Tensor:
        slices, classes = sample_slices(pool, rng)
        return functional.cross_entropy(network(slices).flatten(0, 1), classes.flatten())

    label = "Training the checker network"
    return train_one_cycle(CheckerNetwork, loss, MAX_RATE, steps, seed, label, progress=None)
