"""Pictures of boards as GNU Backgammon draws them, where that program is installed.

In its own look the player on roll sits below, bears off at the lower right and has the darker
checkers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from casewright.domains.backgammon.engine import Engine
from casewright.domains.backgammon.position import Position

if TYPE_CHECKING:
    from PIL import Image

#: Positions that one run of the program draws.
BATCH = 50


def gnubg_boards(
    positions: Sequence[Position], engine: Engine | None = None
) -> Iterator[Image.Image]:
    """Yield boards as images of mode "RGB", in the positions' order.

    Raises:
        DependencyError: The program is not installed.
        ToolError: It crashed, took too long, or drew fewer.
    """
    from PIL import Image

    program = engine or Engine()
    for start in range(0, len(positions), BATCH):
        with TemporaryDirectory(prefix="casewright-boards-") as folder:
            for file in program.draw(positions[start : start + BATCH], Path(folder)):
                with Image.open(file) as image:
                    yield image.convert("RGB")
