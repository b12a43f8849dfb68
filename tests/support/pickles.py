"""A local store with pickles that call a function when they are read."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any


class _Calling:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self._file,)


def plant(storage: Path, file: Path) -> None:
    """Replace the points in a store's ``storage.sqlite`` by pickles that create ``file``."""
    with sqlite3.connect(storage) as opened:
        changed = opened.execute("UPDATE points SET point = ?", (pickle.dumps(_Calling(file)),))
        assert changed.rowcount
    opened.close()
