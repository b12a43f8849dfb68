"""Accuracy of a board reader on newly drawn boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from casewright_backgammon.board_check import reading_flaw
from casewright_backgammon.board_image import render_board
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
from casewright_backgammon.board_style import random_style
from casewright_backgammon.non_boards import TRAINING_KINDS, UNSEEN_KINDS, Kind, draw_non_board
from casewright_mcbr.fonts import training_fonts

#: An accepted wrong reading costs as much as this number of refused right readings.
WRONG_COST = 3
#: Bounds of both thresholds, ``LEAST_BOARD`` and ``LEAST_CONFIDENCE``.
MIN_THRESHOLD, MAX_THRESHOLD = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of reading a drawn board."""

    reading: BoardReading
    is_right: bool
    is_impossible: bool
    right_slice_share: float  # the share of slices that are read right


def measure(folder: Path, *, seed: int = 0, count: int = 1000) -> dict[str, float]:
    """Return the accuracy of a reader on new pictures.

    Args:
        folder: The folder of the networks' files.
        seed: Random seed of the pictures; it must differ from the seed of the training.
        count: Number of pictures of each sort: boards, and others of trained and of unseen kinds.

    Returns:
        ``boards_right`` is the share of boards whose checkers are all read right, in an accepted
        reading. ``boards_refused`` is the share of refused boards, and ``wrong_caught`` the share
        of wrong readings that are refused. ``slices_right`` is the share of slices that are read
        right. For these figures, the reader is given the numbers of borne-off checkers. Of the
        pictures without a board, ``non_boards_refused`` is the refused share of the trained kinds,
        ``unseen_kinds_refused`` that of the unseen kinds. The other figures are the thresholds.
    """
    reader = BoardReader(folder)
    rng = np.random.default_rng(seed)
    outcomes = _read_boards(reader, rng, count)
    impossible = np.array([outcome.is_impossible for outcome in outcomes])
    probabilities = np.array([outcome.reading.board_probability for outcome in outcomes])
    confidences = np.array([outcome.reading.confidence for outcome in outcomes])
    refused = impossible | (probabilities < reader.least_board)
    refused |= confidences < reader.least_confidence
    right = np.array([outcome.is_right for outcome in outcomes])
    return {
        "boards_right": float((right & ~refused).mean()),
        "boards_refused": float(refused.mean()),
        **({} if right.all() else {"wrong_caught": float(refused[~right].mean())}),
        "slices_right": sum(outcome.right_slice_share for outcome in outcomes) / count,
        "non_boards_refused": _refused_share(reader, TRAINING_KINDS, rng, count),
        "unseen_kinds_refused": _refused_share(reader, UNSEEN_KINDS, rng, count),
        LEAST_BOARD: reader.least_board,
        LEAST_CONFIDENCE: reader.least_confidence,
    }


def choose_thresholds(
    folder: Path, *, seed: int = 0, count: int = 1000
) -> dict[str, dict[str, float]]:
    """Return the thresholds for each network's file, chosen on ``count`` new boards.

    The board threshold is the highest one that refuses at most one board in 500, but is kept in the
    bounds. The confidence threshold minimises the number of refused right readings plus
    ``WRONG_COST`` times the number of accepted wrong readings. ``seed`` must differ from the
    training's seed.
    """
    outcomes = _read_boards(BoardReader(folder), np.random.default_rng(seed), count)
    probabilities = np.array([outcome.reading.board_probability for outcome in outcomes])
    least_board = float(np.quantile(probabilities, 0.002).clip(MIN_THRESHOLD, MAX_THRESHOLD))
    possible = [outcome for outcome in outcomes if not outcome.is_impossible]
    confidences = np.array([outcome.reading.confidence for outcome in possible])
    right = np.array([outcome.is_right for outcome in possible], dtype=bool)
    limits = np.linspace(MIN_THRESHOLD, MAX_THRESHOLD, 81)
    accepted = confidences >= limits[:, None]
    costs = np.where(right, ~accepted, WRONG_COST * accepted).sum(axis=1)
    least_confidence = float(limits[int(costs.argmin())])
    return {
        LANDMARKS_FILE: {LEAST_BOARD: least_board},
        CHECKERS_FILE: {LEAST_CONFIDENCE: least_confidence},
    }


def _read_boards(reader: BoardReader, rng: np.random.Generator, count: int) -> list[_Outcome]:
    """Return the outcomes of reading ``count`` random boards."""
    fonts: list[Path | None] = [None, *training_fonts()]
    outcomes = []
    for position in islice(random_positions(rng), count):
        style = random_style(rng, fonts)
        reading = reader.likeliest_readings(render_board(position, style), offs=[position.off])[0]
        counts = signed_counts(position, "light", "right", own_bar_below=style.own_bar_below)
        is_right = reading.position == position
        is_impossible = bool(reading_flaw(reading.counts, "light", "right", position.off))
        right_slice_share = float(np.equal(reading.counts, counts).mean())
        outcomes.append(_Outcome(reading, is_right, is_impossible, right_slice_share))
    return outcomes


def _refused_share(
    reader: BoardReader, kinds: Mapping[str, Kind], rng: np.random.Generator, count: int
) -> float:
    """Return the share of ``count`` pictures without a board that the reader refuses."""
    pictures = (draw_non_board(kinds, rng) for _ in range(count))
    readings = (reader.likeliest_readings(picture)[0] for picture in pictures)
    return sum(bool(reader.refusal(reading)) for reading in readings) / count
