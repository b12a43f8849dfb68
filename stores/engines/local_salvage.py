"""A collection of qdrant-client's local mode built anew of the cases in it that are sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from casewright.stores.engines.case_sums import SUMS, check_sums
from casewright.stores.engines.local_engine import payload_text
from casewright.stores.engines.local_points import read_point

TABLE = "CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)"


def salvaged(storage: Path) -> dict[str, Any]:
    """Put a database of what is sound in a damaged one's place, which is kept beside it.

    Args:
        storage: A collection's, in a folder that is held.

    Returns:
        As ``edge_salvage.salvaged``; ``lost`` is ``None`` where its rows cannot be counted.
    """
    new, beside = storage.with_suffix(".new"), storage.with_suffix(".damaged")
    new.unlink(missing_ok=True)
    kept = lost = 0
    damage = _damage(storage)
    texts: list[dict[str, Any]] = []
    whole = False
    with closing(sqlite3.connect(new)) as made, made:
        made.execute(TABLE)
        for row in _rows(storage):
            whole = row == ()
            if whole:
                break
            point, sound = _point(row)
            if sound:
                made.execute("INSERT INTO points VALUES (?, ?)", row)
            elif point is not None:
                texts.append(point)
            kept, lost = kept + sound, lost + (not sound)
    storage.rename(beside)
    new.rename(storage)
    # Of a damaged table a row may be passed over without an error.
    left = lost if whole and not damage else None
    back = 0 if left is not None else None
    return {"cases": kept, "lost": left, "back": back, "texts": texts, "beside": str(beside)}


def _damage(storage: Path) -> str:
    """Return what SQLite finds wrong with a database; empty where that is nothing."""
    with closing(sqlite3.connect(f"{storage.as_uri()}?mode=ro", uri=True)) as db:
        try:
            said = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except sqlite3.DatabaseError as error:
            return str(error)
    return "" if said == "ok" else said


def _rows(storage: Path) -> Iterator[Any]:
    """Yield each row, ``None`` for one that cannot be read, and ``()`` behind the last."""
    with closing(sqlite3.connect(f"{storage.as_uri()}?mode=ro", uri=True)) as db:
        try:
            last = db.execute("SELECT max(rowid) FROM points").fetchone()[0] or 0
        except sqlite3.DatabaseError:
            return
        for number in range(1, last + 1):
            try:
                row = db.execute("SELECT * FROM points WHERE rowid = ?", (number,)).fetchone()
                # One that was deleted is no row.
                if row is not None:
                    yield row
            except sqlite3.DatabaseError:
                yield None
    yield ()


def _point(row: Any) -> tuple[dict[str, Any] | None, bool]:
    """Return the case that a row holds where its text is sound, and whether all of it is."""
    try:
        point = read_point(row[1])
        id_, stored = str(point.id), point.payload
        payload = {name: value for name, value in stored.items() if name != SUMS}
        check_sums(stored, id_, [payload_text(payload)], None)
    # What is damaged may raise anything.
    except Exception:  # noqa: BLE001
        return None, False
    try:
        # It has no name, since a collection has one vector a case.
        vector = np.asarray(point.vector[""], dtype=np.float32)
        check_sums(stored, id_, [payload_text(payload)], vector)
    except (ValueError, TypeError, LookupError):
        return {"id": id_, **payload}, False
    return None, True
