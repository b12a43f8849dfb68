"""Accuracy of the board reader on three renderers: ours, a second one, and GNU Backgammon's."""

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
from casewright_backgammon.board_reader import (
    BoardReader,
    BoardReading,
    shipped_reader,
)
from casewright_backgammon.board_style import PLAIN, draw_style
from casewright_backgammon.engine import Engine, find_engine
from casewright_backgammon.position import Position
from casewright_mcbr.fonts import unseen_fonts

if TYPE_CHECKING:
    from PIL import Image

#: Positions that one run of GNU Backgammon draws.
BATCH = 50
Drawn = Callable[[Sequence[Position]], Iterable["Image.Image"]]


def gnubg_boards(
    positions: Sequence[Position], engine: Engine | None = None
) -> Iterator[Image.Image]:
    """Yield boards as GNU Backgammon draws them, images of mode "RGB", in the positions' order.

    In its own look the player on roll sits below, bears off at the lower right and has the darker
    checkers.
    """
    from PIL import Image

    program = engine or Engine()
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
    """Measure the reading of boards.

    Args:
        positions: Positions to choose from.
        count: Boards of each renderer, chosen at random, without repetition.
        seed: Of that choice and of our renderer's styles.
        reader: The reader; ``None`` for the shipped one.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Returns:
        A row for each renderer, with ``off`` given and not given: ``renderer``,
        ``off_known``, ``boards``; shares of all boards: ``right`` (the whole position, not
        refused), ``refused_right``, ``refused_wrong``, ``wrong`` (and not refused); ``caught``,
        the share of the positions read wrong that is refused, and ``caught_by_check``, the share
        that is not legal or does not add up; ``slices``, the share of slices read right.
    """
    rng = np.random.default_rng(seed)
    unique = list(dict.fromkeys(positions))
    chosen = [unique[int(index)] for index in rng.permutation(len(unique))[:count]]
    rows = []
    renderers = _renderers(seed)
    total = len(renderers) * len(chosen)
    with progress_bar("Reading boards", total, show=progress) as advance:
        for name, (own, draw) in renderers.items():
            rows += _rows(reader or shipped_reader(), name, own, draw, chosen, advance)
    return rows


def _renderers(seed: int) -> Mapping[str, tuple[Colour, Drawn]]:
    def styled(positions: Sequence[Position]) -> Iterator[Image.Image]:
        rng = np.random.default_rng(seed)
        fonts: list[Path | None] = [*unseen_fonts()]
        for position in positions:
            yield render_board(position, draw_style(rng, fonts))

    def printed(positions: Sequence[Position]) -> Iterator[Image.Image]:
        return map(render, positions, cycle(LOOKS.values()))

    renderers: dict[str, tuple[Colour, Drawn]] = {
        "plain": ("light", lambda some: (render_board(position, PLAIN) for position in some)),
        "own styles": ("light", styled),
        "matplotlib": ("light", printed),
    }
    return {**renderers, "gnubg": ("dark", gnubg_boards)} if find_engine() else renderers


def _rows(
    reader: BoardReader,
    name: str,
    own: Colour,
    draw: Drawn,
    positions: Sequence[Position],
    advance: Callable[[int], None],
) -> list[dict[str, Any]]:
    kept: dict[bool, list[tuple[Position, BoardReading, str, float]]] = {False: [], True: []}
    for position, image in zip(positions, draw(positions), strict=True):
        offs = (None, position.off)
        looks = reader.looks(image, own, "right", offs)
        for some, off, reading in zip(kept.values(), offs, looks, strict=True):
            why = reader.refusal(reading, own, off=off)
            some.append((position, reading, why, _slices_right(reading.counts, position, own)))
        advance(1)
    return [_row(name, known, some) for known, some in kept.items()]


def _row(
    name: str, known: bool, kept: Sequence[tuple[Position, BoardReading, str, float]]
) -> dict[str, Any]:
    right = np.array([reading.position == position for position, reading, _, _ in kept])
    refused = np.array([bool(why) for _, _, why, _ in kept])
    by_check = np.array(["a position that cannot be" in why for _, _, why, _ in kept])
    wrong = int((~right).sum())
    return {
        "renderer": name,
        "off_known": known,
        "boards": len(kept),
        "right": mean(right & ~refused),
        "refused_right": mean(right & refused),
        "refused_wrong": mean(~right & refused),
        "wrong": mean(~right & ~refused),
        "caught": float((~right & refused).sum() / wrong) if wrong else None,
        "caught_by_check": float((~right & by_check).sum() / wrong) if wrong else None,
        "slices": mean([share for *_, share in kept]),
    }


def _slices_right(counts: Sequence[int], position: Position, own: Colour) -> float:
    """Return the share of slices that were read right, on either half of the bar."""
    read = np.array(counts)
    # Renderers differ in the halves of the bar.
    return max(
        mean(read == np.array(signed_counts(position, own, "right", own_bar_below=below)))
        for below in (True, False)
    )
