"""Accuracy of the board reader on boards that our renderer, matplotlib or GNU Backgammon draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.harness import mean
from casewright.stores.progress import progress_bar
from casewright_backgammon.bench_renderer import LOOKS, render
from casewright_backgammon.board_image import render_board
from casewright_backgammon.board_layout import Colour, signed_counts
from casewright_backgammon.board_reader import shipped_reader
from casewright_backgammon.board_style import random_style
from casewright_backgammon.engine import GnuBackgammon, find_engine
from casewright_backgammon.position import Position
from casewright_mcbr.fonts import unseen_fonts

if TYPE_CHECKING:
    from PIL import Image

#: Number of positions that one run of GNU Backgammon draws.
BATCH_SIZE = 50
#: Random seed of the choice of positions, and of the styles of our renderer.
SEED = 7
#: Yields a picture of each position's board.
Renderer = Callable[[Sequence[Position]], Iterable["Image.Image"]]
#: Outcome of a reading: (True if right, reason of the refusal or "", share of right slices).
_Outcome = tuple[bool, str, float]


def gnubg_boards(positions: Sequence[Position]) -> Iterator[Image.Image]:
    """Yield GNU Backgammon's picture of each position's board, as an image of mode "RGB".

    The player on roll sits below, bears off at the lower right, and has the darker checkers.
    """
    from PIL import Image

    engine = GnuBackgammon()
    for start in range(0, len(positions), BATCH_SIZE):
        with TemporaryDirectory(prefix="casewright-boards-") as folder:
            for file in engine.draw(positions[start : start + BATCH_SIZE], Path(folder)):
                with Image.open(file) as image:
                    yield image.convert("RGB")


def reading_rows(positions: Sequence[Position], count: int) -> list[dict[str, Any]]:
    """Return the accuracy of the shipped reader for each renderer.

    Args:
        positions: The positions to choose from.
        count: Number of positions to choose at random; every renderer draws these positions.

    Returns:
        Two rows for each ``renderer``; if ``off_known``, the reader is given the numbers of
        borne-off checkers. ``boards`` is the number of boards. Four columns are shares of boards:
        ``right`` (all checkers are read right, and the reading is accepted), ``refused_right``,
        ``refused_wrong`` and ``wrong`` (accepted). Of all wrong readings, the share ``caught`` is
        refused, and the share ``caught_by_check`` is refused as impossible. ``slices`` is the share
        of slices that are read right.
    """
    rng = np.random.default_rng(SEED)
    unique = list(dict.fromkeys(positions))
    sample = [unique[int(index)] for index in rng.permutation(len(unique))[:count]]
    rows = []
    renderers = _renderers()
    with progress_bar("Reading boards", len(renderers) * len(sample)) as advance:
        for name, (own, draw) in renderers.items():
            rows += _rows(name, own, draw, sample, advance)
    return rows


def _renderers() -> Mapping[str, tuple[Colour, Renderer]]:
    """Return the renderers by name, each with its colour of the player on roll."""

    def draw_random_styles(positions: Sequence[Position]) -> Iterator[Image.Image]:
        rng = np.random.default_rng(SEED)
        fonts: list[Path | None] = [*unseen_fonts()]
        for position in positions:
            yield render_board(position, random_style(rng, fonts))

    renderers: dict[str, tuple[Colour, Renderer]] = {
        "plain": ("light", lambda positions: map(render_board, positions)),
        "own styles": ("light", draw_random_styles),
        "matplotlib": ("light", lambda positions: map(render, positions, cycle(LOOKS.values()))),
    }
    return {**renderers, "gnubg": ("dark", gnubg_boards)} if find_engine() else renderers


def _rows(
    name: str,
    own: Colour,
    draw: Renderer,
    positions: Sequence[Position],
    advance: Callable[[int], None],
) -> list[dict[str, Any]]:
    """Return a renderer's two rows: for unknown and for known numbers of borne-off checkers."""
    reader = shipped_reader()
    outcomes_by_off_known: dict[bool, list[_Outcome]] = {False: [], True: []}
    for position, image in zip(positions, draw(positions), strict=True):
        offs = (None, position.off)
        readings = reader.likeliest_readings(image, own, "right", offs)
        for off, reading in zip(offs, readings, strict=True):
            is_right = reading.position == position
            refusal = reader.refusal(reading, own, off=off)
            slice_share = _right_slice_share(reading.counts, position, own)
            outcomes_by_off_known[off is not None].append((is_right, refusal, slice_share))
        advance(1)
    return [_row(name, known, outcomes) for known, outcomes in outcomes_by_off_known.items()]


def _row(name: str, off_known: bool, outcomes: Sequence[_Outcome]) -> dict[str, Any]:
    right = np.array([is_right for is_right, _, _ in outcomes])
    refused = np.array([bool(refusal) for _, refusal, _ in outcomes])
    # The texts of ``BoardReader.refusal`` for impossible readings contain these words.
    impossible = np.array(["an impossible position" in refusal for _, refusal, _ in outcomes])
    return {
        "renderer": name,
        "off_known": off_known,
        "boards": len(outcomes),
        "right": mean(right & ~refused),
        "refused_right": mean(right & refused),
        "refused_wrong": mean(~right & refused),
        "wrong": mean(~right & ~refused),
        "caught": None if right.all() else mean(refused[~right]),
        "caught_by_check": None if right.all() else mean(impossible[~right]),
        "slices": mean([slice_share for _, _, slice_share in outcomes]),
    }


def _right_slice_share(counts: Sequence[int], position: Position, own: Colour) -> float:
    """Return the share of slices that are read right."""
    # A renderer may draw a player's checkers on either half of the bar, so both are compared.
    return max(
        mean(np.equal(counts, signed_counts(position, own, "right", own_bar_below=is_below)))
        for is_below in (True, False)
    )
