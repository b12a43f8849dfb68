"""Accuracy of a board reader on newly drawn boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from casewright_backgammon.board_check import reading_flaw
from casewright_backgammon.board_image import draw_board
from casewright_backgammon.board_layout import signed_counts
from casewright_backgammon.board_positions import random_positions
from casewright_backgammon.board_reader import (
    CHECKERS_FILE,
    LANDMARKS_FILE,
    LEAST_BOARD,
    LEAST_CONFIDENCE,
    BoardReader,
    BoardReading,
)
from casewright_backgammon.board_style import draw_style
from casewright_backgammon.non_boards import LEARNED, UNSEEN, Kind, draw_non_board
from casewright_mcbr.fonts import training_fonts

#: Cost of an accepted wrong reading, in refused right readings.
COST = 3
#: Bounds of the thresholds.
LEAST, MOST = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class _Seen:
    reading: BoardReading
    right: bool
    flawed: bool
    slices: float


def measure(folder: Path, *, seed: int = 0, count: int = 1000) -> dict[str, float]:
    """Return the accuracy of a reader on new pictures.

    Args:
        folder: The folder of the networks' files.
        seed: Random seed of the pictures; use another one than the training.
        count: Number of boards, and of other pictures of each kind.

    Returns:
        Shares from 0 to 1. Of boards, with the borne-off checkers given: ``boards_right``, all
        checkers read right and the reading accepted; ``boards_refused``; ``wrong_caught``, the
        refused share of the wrong readings; ``slices_right``. Of pictures without a board, the
        refused shares: ``non_boards_refused`` for learned kinds, ``unseen_kinds_refused`` for other
        kinds. Also the thresholds ``least_board`` and ``least_confidence``.
    """
    reader = BoardReader(folder)
    rng = np.random.default_rng(seed)
    seen = _boards(reader, rng, count)
    refused = [
        board.flawed
        or board.reading.board < reader.least_board
        or board.reading.confidence < reader.least_confidence
        for board in seen
    ]
    pairs = list(zip(seen, refused, strict=True))
    wrong = [out for board, out in pairs if not board.right]
    return {
        "boards_right": sum(board.right and not out for board, out in pairs) / count,
        "boards_refused": sum(refused) / count,
        **({"wrong_caught": sum(wrong) / len(wrong)} if wrong else {}),
        "slices_right": sum(board.slices for board in seen) / count,
        "non_boards_refused": _refused(reader, LEARNED, rng, count),
        "unseen_kinds_refused": _refused(reader, UNSEEN, rng, count),
        LEAST_BOARD: reader.least_board,
        LEAST_CONFIDENCE: reader.least_confidence,
    }


def chosen_thresholds(
    folder: Path, *, seed: int = 0, count: int = 1000
) -> dict[str, dict[str, float]]:
    """Return the thresholds for each network's file, chosen on new pictures.

    The board threshold accepts as few pictures of the learned kinds as possible, but refuses at
    most one board in 500. The confidence threshold minimises the number of refused right readings
    plus ``COST`` times the number of accepted wrong readings.

    Args:
        folder: The folder of the networks' files.
        seed: Random seed of the pictures; use another one than the training.
        count: Number of boards, and of other pictures.
    """
    reader = BoardReader(folder)
    rng = np.random.default_rng(seed)
    seen = _boards(reader, rng, count)
    boards = np.array([board.reading.board for board in seen])
    least_board = float(np.quantile(boards, 0.002).clip(LEAST, MOST))
    passed = [board for board in seen if not board.flawed]
    sure = np.array([board.reading.confidence for board in passed])
    right = np.array([board.right for board in passed], dtype=bool)
    limits = np.linspace(LEAST, MOST, 81)
    costs = [(right & (sure < t)).sum() + COST * (~right & (sure >= t)).sum() for t in limits]
    least_confidence = float(limits[int(np.argmin(costs))])
    return {
        LANDMARKS_FILE: {LEAST_BOARD: least_board},
        CHECKERS_FILE: {LEAST_CONFIDENCE: least_confidence},
    }


def _boards(reader: BoardReader, rng: np.random.Generator, count: int) -> list[_Seen]:
    fonts: list[Path | None] = [None, *training_fonts()]
    seen = []
    for position in islice(random_positions(rng), count):
        style = draw_style(rng, fonts)
        image, _ = draw_board(position, style)
        reading = reader.look(image, off=position.off)
        counts = signed_counts(position, "light", "right", own_bar_below=style.own_bar_below)
        equal = np.array(reading.counts) == counts
        seen.append(
            _Seen(
                reading,
                reading.position == position,
                bool(reading_flaw(reading.counts, "light", "right", position.off)),
                float(equal.mean()),
            )
        )
    return seen


def _refused(
    reader: BoardReader, kinds: Mapping[str, Kind], rng: np.random.Generator, count: int
) -> float:
    refused = 0
    for _ in range(count):
        reading = reader.look(draw_non_board(kinds, rng))
        refused += bool(reader.refusal(reading))
    return refused / count
