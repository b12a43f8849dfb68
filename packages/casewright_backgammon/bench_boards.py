"""Accuracy of the board reader on boards drawn by three renderers: ours, matplotlib, gnubg."""

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
from casewright_backgammon.board_reader import BoardReader, BoardReading, shipped_reader
from casewright_backgammon.board_style import draw_style
from casewright_backgammon.engine import GnuBackgammon, find_engine
from casewright_backgammon.position import Position
from casewright_mcbr.fonts import unseen_fonts

if TYPE_CHECKING:
    from PIL import Image

#: Number of positions that one run of GNU Backgammon draws.
BATCH = 50
#: Draws the boards of positions.
Renderer = Callable[[Sequence[Position]], Iterable["Image.Image"]]


def gnubg_boards(
    positions: Sequence[Position], engine: GnuBackgammon | None = None
) -> Iterator[Image.Image]:
    """Yield the boards that GNU Backgammon draws of the positions, images of mode "RGB".

    The player on roll sits below, bears off at the lower right, and has the darker checkers.
    """
    from PIL import Image

    program = engine or GnuBackgammon()
    for start in range(0, len(positions), BATCH):
        with TemporaryDirectory(prefix="casewright-boards-") as folder:
            for file in program.draw(positions[start : start + BATCH], Path(folder)):
                with Image.open(file) as image:
                    yield image.convert("RGB")


def reading_rows(
    positions: Sequence[Position],
    *,
    count: int,
    seed: int = 7,
    reader: BoardReader | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Return the accuracy of a board reader for each renderer.

    Args:
        positions: The positions to choose from.
        count: Number of boards of each renderer, chosen at random without repetition.
        seed: Random seed of the choice, and of the styles of our renderer.
        reader: By default the shipped reader.
        progress: See ``progress_bar``.

    Returns:
        Two rows for each ``renderer``: ``off_known`` says whether the reader is given the numbers
        of borne-off checkers. ``boards`` is their number. ``right``, ``refused_right``,
        ``refused_wrong`` and ``wrong`` are shares of boards: the whole position is read right or
        wrong, and the reading is accepted or refused. Of the wrong readings, ``caught`` is the
        share that is refused, ``caught_by_check`` the share of impossible positions. ``slices`` is
        the share of slices that are read right.
    """
    rng = np.random.default_rng(seed)
    unique = list(dict.fromkeys(positions))
    sample = [unique[int(index)] for index in rng.permutation(len(unique))[:count]]
    rows = []
    renderers = _renderers(seed)
    total = len(renderers) * len(sample)
    with progress_bar("Reading boards", total, show=progress) as advance:
        for name, (own, draw) in renderers.items():
            rows += _rows(reader or shipped_reader(), name, own, draw, sample, advance)
    return rows


def _renderers(seed: int) -> Mapping[str, tuple[Colour, Renderer]]:
    def draw_random_styles(positions: Sequence[Position]) -> Iterator[Image.Image]:
        rng = np.random.default_rng(seed)
        fonts: list[Path | None] = [*unseen_fonts()]
        for position in positions:
            yield render_board(position, draw_style(rng, fonts))

    renderers: dict[str, tuple[Colour, Renderer]] = {
        "plain": ("light", lambda positions: map(render_board, positions)),
        "own styles": ("light", draw_random_styles),
        "matplotlib": ("light", lambda positions: map(render, positions, cycle(LOOKS.values()))),
    }
    return {**renderers, "gnubg": ("dark", gnubg_boards)} if find_engine() else renderers


def _rows(
    reader: BoardReader,
    name: str,
    own: Colour,
    draw: Renderer,
    positions: Sequence[Position],
    advance: Callable[[int], None],
) -> list[dict[str, Any]]:
    readings: dict[bool, list[tuple[Position, BoardReading, str, float]]] = {False: [], True: []}
    for position, image in zip(positions, draw(positions), strict=True):
        offs = (None, position.off)
        results = reader.likeliest_readings(image, own, "right", offs)
        for outcomes, off, reading in zip(readings.values(), offs, results, strict=True):
            reason = reader.refusal(reading, own, off=off)
            share = _share_right(reading.counts, position, own)
            outcomes.append((position, reading, reason, share))
        advance(1)
    return [_row(name, off_known, outcomes) for off_known, outcomes in readings.items()]


def _row(
    name: str, off_known: bool, readings: Sequence[tuple[Position, BoardReading, str, float]]
) -> dict[str, Any]:
    right = np.array([reading.position == position for position, reading, _, _ in readings])
    refused = np.array([bool(reason) for _, _, reason, _ in readings])
    impossible = np.array(["an impossible position" in reason for _, _, reason, _ in readings])
    wrong = int((~right).sum())
    return {
        "renderer": name,
        "off_known": off_known,
        "boards": len(readings),
        "right": mean(right & ~refused),
        "refused_right": mean(right & refused),
        "refused_wrong": mean(~right & refused),
        "wrong": mean(~right & ~refused),
        "caught": float((~right & refused).sum() / wrong) if wrong else None,
        "caught_by_check": float((~right & impossible).sum() / wrong) if wrong else None,
        "slices": mean([share for *_, share in readings]),
    }


def _share_right(counts: Sequence[int], position: Position, own: Colour) -> float:
    """Return the share of slices that are read right."""
    read = np.array(counts)
    # Renderers put a player's checkers on different halves of the bar.
    return max(
        mean(read == np.array(signed_counts(position, own, "right", own_bar_below=below)))
        for below in (True, False)
    )
