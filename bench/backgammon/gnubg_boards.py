"""Pictures of boards as GNU Backgammon draws them, where that program is installed.

In its own look the player on roll sits below, bears off at the lower right and has the darker
checkers.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.domains.backgammon.position import Position
from casewright.errors import DependencyError

if TYPE_CHECKING:
    from PIL import Image

#: Positions that one run of the program draws.
BATCH = 50
#: Seconds that a run may take.
PATIENCE = 120
#: Looks of the program, as its command "set appearance" takes them; none is its own.
APPEARANCES: Mapping[str, str] = {"gnubg": ""}


def gnubg_program() -> str | None:
    """Return where GNU Backgammon is, ``None`` where it is not installed."""
    # Distributions put it among the games, which are not on every path.
    return shutil.which("gnubg") or shutil.which("gnubg", path="/usr/games")


def gnubg_boards(positions: Sequence[Position], appearance: str = "") -> Iterator[Image.Image]:
    """Draw boards.

    Args:
        positions: What stands on them.
        appearance: What "set appearance" is given; empty for the program's own look.

    Yields:
        Images of mode "RGB", in the positions' order.

    Raises:
        DependencyError: The program is not installed, or drew nothing.
    """
    program = gnubg_program()
    if program is None:
        raise DependencyError("GNU Backgammon is not installed. Install the program gnubg.")
    for start in range(0, len(positions), BATCH):
        with _drawn(program, positions[start : start + BATCH], appearance) as files:
            from PIL import Image

            for file in files:
                with Image.open(file) as image:
                    yield image.convert("RGB")


@contextmanager
def _drawn(program: str, positions: Sequence[Position], appearance: str) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.png" for number in range(len(positions))]
        lines = ["set automatic game off", "set automatic roll off", "new game"]
        if appearance:
            lines.append(f"set appearance {appearance}")
        for position, file in zip(positions, files, strict=True):
            lines += [f"set board {position.id}", "set turn 1", f"export position png {file}"]
        script = Path(folder) / "commands.txt"
        script.write_text("\n".join([*lines, ""]), encoding="utf-8")
        subprocess.run(
            [program, "-t", "-q", "-c", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            timeout=PATIENCE,
            check=False,
        )
        if missing := [file for file in files if not file.is_file()]:
            raise DependencyError(
                f"GNU Backgammon ({program}) drew {len(files) - len(missing)} of {len(files)} "
                "boards. Try: export position png FILE"
            )
        yield files
