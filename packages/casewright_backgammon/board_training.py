"""Training the reader of boards: on one core in minutes, on boards that are drawn for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright_backgammon.board_batches import Pool, deal_boards, deal_views, draw_pool
from casewright_backgammon.board_measures import chosen_thresholds, measure
from casewright_backgammon.board_reader import CHECKERS_FILE, LANDMARKS_FILE
from casewright_mcbr.fonts import training_fonts
from casewright.errors import InputError
from casewright.stores.encoders.onnx_export import export_onnx, remember
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from torch import Tensor, nn

    from casewright_backgammon.checker_network import CheckerNetwork
    from casewright_backgammon.landmark_network import LandmarkNetwork

#: Greatest learning rates.
LANDMARK_RATE, CHECKER_RATE = 4e-3, 4e-3
#: Boards and other pictures that are drawn; training steps of either network.
POOL, OTHERS, LANDMARK_STEPS, CHECKER_STEPS = 5000, 900, 1100, 1700
#: Spread of the heat that a landmark should have, in cells.
SPREAD = 0.8


def train_board_reader(
    folder: Path,
    *,
    seed: int = 0,
    boards: int = POOL,
    others: int = OTHERS,
    landmark_steps: int = LANDMARK_STEPS,
    checker_steps: int = CHECKER_STEPS,
    measured: int = 150,
    progress: bool | None = None,
) -> dict[str, float]:
    """Train the networks that read boards, and write them as ONNX files.

    They learn from boards in styles and of positions that are drawn at random. The same arguments
    give the same files on one machine.

    Args:
        folder: Where ``landmarks.onnx`` and ``checkers.onnx`` are written; it is made.
        seed: Of weights, positions and styles.
        boards: Boards that are drawn to learn from; 15 a second on one core.
        others: Pictures of no boards.
        landmark_steps: Training steps of 32 views; 3 a second on one core.
        checker_steps: Training steps of 16 boards' slices; 1.7 a second on one core.
        measured: Boards drawn to choose thresholds by, and again to measure with.
        progress: Show bars on stderr; ``None`` shows them on a terminal.

    Returns:
        What ``measure`` says of the reader.

    Raises:
        InputError: A number is below 1, or the folder is a file.
        DependencyError: matplotlib, which brings fonts, is not installed.
    """
    if min(boards, others, landmark_steps, checker_steps, measured) < 1:
        raise InputError(
            "Nothing can be learned from fewer than 1 picture or in fewer than 1 step."
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Give the folder for the networks' files.")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    fonts: list[Path | None] = [None, *training_fonts()]
    with progress_bar("Drawing boards", boards + others, show=progress) as advance:
        pool = draw_pool(rng, fonts, boards, others, advance)
    landmarks = _landmark_network(pool, seed, landmark_steps, progress)
    _export_landmarks(landmarks, folder / LANDMARKS_FILE)
    checkers = _checker_network(pool, seed, checker_steps, progress)
    _export_checkers(checkers, folder / CHECKERS_FILE)
    # Chosen on what was learned: other renderers have no say.
    for file, told in chosen_thresholds(folder, seed=seed + 1, count=measured).items():
        remember(folder / file, told)
    return measure(folder, seed=seed + 2, count=measured)


def _landmark_network(pool: Pool, seed: int, steps: int, progress: bool | None) -> LandmarkNetwork:
    import torch

    from casewright_backgammon.landmark_network import LandmarkNetwork

    rng = np.random.default_rng([seed, 1])
    torch.manual_seed(seed)
    network = LandmarkNetwork().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss() -> Tensor:
        views, wanted, shows = deal_views(pool, rng)
        maps, board = network(views)
        return _landmark_loss(network, maps, board, wanted, shows)

    _descend(network, loss, LANDMARK_RATE, steps, "Training the landmark network", progress)
    made: LandmarkNetwork = network
    return made


def _landmark_loss(
    network: LandmarkNetwork, maps: Tensor, board: Tensor, wanted: Tensor, shows: Tensor
) -> Tensor:
    """Return how far heat maps are from heat around the landmarks, and places from them."""
    import torch
    from torch.nn import functional

    from casewright_backgammon.landmark_network import CELL

    there = shows > 0.5
    wanted = wanted[there]
    far = (network.places - wanted.unsqueeze(2)).square().sum(-1)
    heat = torch.softmax(-far / (2 * (SPREAD * CELL) ** 2), dim=-1)
    likely = functional.log_softmax(maps[there], dim=-1)
    heated = -(heat * likely).sum(-1).mean()
    placed = functional.smooth_l1_loss(network.landmarks(maps[there]), wanted)
    shown = functional.binary_cross_entropy_with_logits(board, shows)
    return heated + placed + shown


def _checker_network(pool: Pool, seed: int, steps: int, progress: bool | None) -> CheckerNetwork:
    import torch
    from torch.nn import functional

    from casewright_backgammon.checker_network import CheckerNetwork

    rng = np.random.default_rng([seed, 2])
    torch.manual_seed(seed)
    network = CheckerNetwork().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss() -> Tensor:
        slices, wanted = deal_boards(pool, rng)
        return functional.cross_entropy(network(slices).flatten(0, 1), wanted.flatten())

    _descend(network, loss, CHECKER_RATE, steps, "Training the checker network", progress)
    made: CheckerNetwork = network
    return made


def _descend(
    network: nn.Module,
    loss: Callable[[], Tensor],
    rate: float,
    steps: int,
    name: str,
    progress: bool | None,
) -> None:
    """Train a network by one cycle of the learning rate (Smith and Topin 2019)."""
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps + 1, pct_start=0.15
    )
    network.train()
    with progress_bar(name, steps, show=progress) as advance:
        for _ in range(steps):
            missed = loss()
            optimizer.zero_grad()
            missed.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            advance(1)
    network.eval()


def _export_landmarks(network: LandmarkNetwork, target: Path) -> None:
    import torch

    from casewright_backgammon.board_slices import VIEW
    from casewright_backgammon.landmark_network import LandmarkPlaces

    export_onnx(
        LandmarkPlaces(network).eval(),
        [torch.rand(2, 3, VIEW[1], VIEW[0])],
        target,
        inputs=["views"],
        outputs=["landmarks", "board"],
        dynamic={"views": {0: torch.export.Dim("n")}},
    )
    remember(target, {})


def _export_checkers(network: CheckerNetwork, target: Path) -> None:
    import torch

    from casewright_backgammon.board_layout import SLICES
    from casewright_backgammon.board_slices import SLICE
    from casewright_backgammon.checker_network import CheckerProbabilities

    export_onnx(
        CheckerProbabilities(network).eval(),
        [torch.rand(2, SLICES, 3, SLICE[1], SLICE[0])],
        target,
        inputs=["slices"],
        outputs=["probabilities"],
        dynamic={"slices": {0: torch.export.Dim("n")}},
    )
    remember(target, {})
