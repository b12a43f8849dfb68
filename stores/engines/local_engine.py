"""qdrant-client's local mode over a folder, with checksums of its files and cases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from casewright.stores.engines.checksums import (
    CLOSED,
    SUMS,
    check_sums,
    closed_cleanly,
    file_sums,
    sums_of,
)
from casewright.stores.engines.engine import Point
from casewright.stores.engines.folder import damaged, open_client, read_point
from casewright.stores.engines.qdrant_engine import QdrantEngine
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.room import check_room
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from qdrant_client import models

#: Local mode's list of collections.
META = "meta.json"


class LocalEngine(QdrantEngine):
    """An engine over a locked folder; it waits for other users of Qdrant until ``deadline``.

    Raises:
        StoreDamagedError: The folder's files are damaged.
        StoreLockedError: Another user of Qdrant has it open beyond the deadline.
        StoreError: It cannot be used.
    """

    def __init__(self, folder: Path, folder_lock: IO[str], deadline: float) -> None:
        self._folder = folder
        closed = closed_cleanly(folder, folder, partial(damaged, folder), None)
        super().__init__(open_client(folder, deadline), str(folder), folder_lock)
        try:
            if not closed:
                self.check_cases()
            (folder / CLOSED).unlink(missing_ok=True)
        except BaseException:
            self._client.close()
            raise

    def check_cases(self) -> dict[str, int]:
        """Read every case; return the number of cases by collection, or raise StoreDamagedError."""
        names = [described.name for described in self._client.get_collections().collections]
        return {
            name: len([self._point(record) for record in self._scrolled(name, vectors=True)])
            for name in names
        }

    def close(self) -> None:
        """Close the client, and write the files' checksums; see ``Engine``."""
        with self._lock:
            if self._folder_lock is None or self._folder_lock.closed:
                return
            self._client.close()
            # If the folder was removed, or its disk is full, the next use checks the cases.
            with suppress(OSError):
                meta = (self._folder / META).read_text(encoding="utf-8")
                sums = {
                    name: numbers
                    for name, numbers in file_sums(self._folder).items()
                    if name == META or name.startswith("collection/")
                }
                write_whole(self._folder / CLOSED, json.dumps({"files": sums, "meta": meta}))
            self._folder_lock.close()

    def _batch(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> models.Batch:
        check_room(self._folder, 4 * vectors.nbytes)
        stored = [
            {**payload, SUMS: sums_of(id_, [_text(payload)], vector)}
            for id_, vector, payload in zip(ids, vectors, payloads, strict=True)
        ]
        return super()._batch(ids, vectors, stored)

    def _point(self, record: Any, score: float = 0.0) -> Point:
        point = super()._point(record, score)
        payload = {name: value for name, value in point.payload.items() if name != SUMS}
        try:
            check_sums(point.payload, point.id, [_text(payload)], point.vector)
        except (ValueError, TypeError) as error:
            raise damaged(self._folder, f"the case {point.id} cannot be read: {error}") from error
        return Point(point.id, payload, score, point.vector)


def restore_local(folder: Path) -> None:
    """Restore ``META`` from the last clean close, and make the next use check all cases."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        closed = json.loads((folder / CLOSED).read_text(encoding="utf-8"))
        write_whole(folder / META, closed["meta"])
    (folder / CLOSED).unlink(missing_ok=True)


def salvaged_local(storage: Path) -> dict[str, Any]:
    """Replace a damaged database by one of its sound cases; see ``edge_child.salvaged``."""
    new, beside = storage.with_suffix(".new"), storage.with_suffix(".damaged")
    new.unlink(missing_ok=True)
    cases = lost = 0
    damage = _damage(storage)
    texts: list[dict[str, Any]] = []
    complete = False
    with closing(sqlite3.connect(new)) as db, db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        for row in _rows(storage):
            complete = row == ()
            if complete:
                break
            text, sound = _salvaged_case(row)
            if sound:
                db.execute("INSERT INTO points VALUES (?, ?)", row)
            elif text is not None:
                texts.append(text)
            cases, lost = cases + sound, lost + (not sound)
    storage.rename(beside)
    new.rename(storage)
    # A row of a damaged table may be passed over without an error.
    known = complete and not damage
    return {
        "cases": cases,
        "lost": lost if known else None,
        "back": 0 if known else None,
        "texts": texts,
        "beside": str(beside),
    }


def _text(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, sort_keys=True, ensure_ascii=False)


def _damage(storage: Path) -> bool:
    with closing(sqlite3.connect(f"{storage.as_uri()}?mode=ro", uri=True)) as db:
        try:
            return str(db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok"
        except sqlite3.DatabaseError:
            return True


def _rows(storage: Path) -> Iterator[Any]:
    """Yield each row, ``None`` for one that cannot be read, and ``()`` after the last."""
    with closing(sqlite3.connect(f"{storage.as_uri()}?mode=ro", uri=True)) as db:
        try:
            last = db.execute("SELECT max(rowid) FROM points").fetchone()[0] or 0
        except sqlite3.DatabaseError:
            return
        for number in range(1, last + 1):
            try:
                row = db.execute("SELECT * FROM points WHERE rowid = ?", (number,)).fetchone()
                # ``None`` is a deleted row.
                if row is not None:
                    yield row
            except sqlite3.DatabaseError:
                yield None
    yield ()


def _salvaged_case(row: Any) -> tuple[dict[str, Any] | None, bool]:
    """Return a row's case if only its text is sound, and ``True`` if all of it is."""
    try:
        point = read_point(row[1])
        id_, stored = str(point.id), point.payload
        payload = {name: value for name, value in stored.items() if name != SUMS}
        check_sums(stored, id_, [_text(payload)], None)
    # Damaged data may raise anything.
    except Exception:  # noqa: BLE001
        return None, False
    try:
        # Without a name, since a collection has one vector a case.
        vector = np.asarray(point.vector[""], dtype=np.float32)
        check_sums(stored, id_, [_text(payload)], vector)
    except (ValueError, TypeError, LookupError):
        return {"id": id_, **payload}, False
    return None, True
