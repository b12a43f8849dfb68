"""Log lines: how they look, and how often one may be repeated."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass

FORMAT = "%(levelname)s %(name)s: %(message)s"
#: Lines of one place of the code that are written in so many seconds.
MOST = 20
SECONDS = 60.0


@dataclass(slots=True)
class _Window:
    ends: float
    written: int = 0
    left_out: int = 0


class Repeated(logging.Filter):
    """Leaves out lines that one place of the code writes too often, and counts them.

    What fails with every request would fill the disk. Errors of several kinds from one place are
    counted apart; the first line that is written again says how many were left out.

    Args:
        most: Lines of one place that are written in that time.
        seconds: The time.
    """

    def __init__(self, most: int = MOST, seconds: float = SECONDS) -> None:
        super().__init__()
        self._most = most
        self._seconds = seconds
        self._windows: dict[tuple[object, ...], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a line is written."""
        kind = record.exc_info[0] if record.exc_info else None
        place = (record.name, record.pathname, record.lineno, kind)
        now = time.monotonic()
        window = self._windows.get(place)
        if window is None or now >= window.ends:
            if window is not None and window.left_out:
                left_out = f"{record.getMessage()} ({window.left_out:,} like it were left out.)"
                record.msg, record.args = left_out, ()
            window = self._windows[place] = _Window(now + self._seconds)
        if window.written >= self._most:
            window.left_out += 1
            return False
        window.written += 1
        return True


def write_log(level: str) -> None:
    """Write the log to stderr, from a level on; at ``debug`` nothing is left out."""
    handler = logging.StreamHandler(sys.stderr)
    if level != "debug":
        handler.addFilter(Repeated())
    logging.basicConfig(level=level.upper(), format=FORMAT, handlers=[handler])
    for quiet in ("httpx", "httpcore"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
