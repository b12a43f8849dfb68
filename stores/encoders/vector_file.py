"""Vectors on disk by key, each with a checksum: one SQLite file."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreError
from casewright.stores.progress import note

FILE = "embeddings.sqlite"
#: Keys a query to SQLite, below its limit on variables.
CHUNK = 500
#: Bytes of a checksum, which stands behind its vector.
SUM = 4
TABLE = "CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
#: Whatever damage has made of its type.
ROWS = "SELECT key, CAST(vector AS BLOB) FROM embedding"


class VectorFile:
    """Vectors of one dimension. A file that cannot be read or written is left aside.

    Not thread-safe: who uses it holds a lock.

    Args:
        folder: Is made where it is missing; ``None`` keeps nothing.
        dimension: Length of a vector.
    """

    def __init__(self, folder: Path | None, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension
        self._db: sqlite3.Connection | None = None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of those keys that the file has, and has as they were written."""
        db = self._connection()
        found: dict[bytes, NDArray[np.float32]] = {}
        if db is None:
            return found
        try:
            for start in range(0, len(keys), CHUNK):
                part = keys[start : start + CHUNK]
                marks = ",".join("?" * len(part))
                rows = db.execute(f"{ROWS} WHERE key IN ({marks})", part)
                for key, blob in rows:
                    if len(blob) == 4 * self._dimension + SUM and _is_sound(key, blob):
                        found[key] = np.frombuffer(blob[:-SUM], dtype=np.float32)
        except sqlite3.Error as error:
            self._leave(error)
        return found

    def write(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep vectors by their keys."""
        db = self._connection()
        if db is None:
            return
        blobs = [(key, vector.astype(np.float32).tobytes()) for key, vector in vectors.items()]
        try:
            with db:
                db.executemany(
                    "INSERT OR REPLACE INTO embedding VALUES (?, ?)",
                    [(key, blob + _sum(key, blob)) for key, blob in blobs],
                )
        except sqlite3.Error as error:
            self._leave(error)

    def _connection(self) -> sqlite3.Connection | None:
        if self._db is None and self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(self._folder / FILE, timeout=5, check_same_thread=False)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.execute(TABLE)
            except (sqlite3.Error, OSError) as error:
                self._leave(error)
        return self._db

    def _leave(self, error: Exception) -> None:
        # A full disk, or a lock, is an error of the moment.
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        ):
            note(
                f"The cache of embeddings {self._folder} is damaged, and left aside: {error}. "
                "casewright repair removes it."
            )
        self._folder, self._db = None, None


def check_vectors(file: Path, *, remove: bool = False) -> tuple[int, int] | None:
    """Return how many vectors a file has, and how many of them are unusable; ``None`` if it is.

    Args:
        file: Of a ``VectorFile``.
        remove: Remove what is unusable: vectors, or the file.

    Raises:
        StoreError: It cannot be read for now.
    """
    try:
        with closing(sqlite3.connect(file, timeout=5)) as db:
            db.execute(TABLE)
            whole, bad = 0, []
            for key, blob in db.execute(ROWS):
                whole += 1
                # An older version wrote none.
                if not _is_sound(key, blob):
                    bad.append((key,))
            if remove:
                with db:
                    db.executemany("DELETE FROM embedding WHERE key = ?", bad)
            return whole, len(bad)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{file} cannot be looked over: {error}. Try again.") from error
    except sqlite3.DatabaseError:
        if remove:
            for ending in ("", "-wal", "-shm"):
                file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)
        return None


def _is_sound(key: bytes, blob: bytes) -> bool:
    return blob[-SUM:] == _sum(key, blob[:-SUM])


def _sum(key: bytes, vector: bytes) -> bytes:
    return zlib.crc32(vector, zlib.crc32(key)).to_bytes(SUM, "little")
