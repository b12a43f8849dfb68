"""qdrant-client's local mode over a folder: its files and its cases have checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from casewright.stores.engines.case_sums import SUMS, check_sums, sums_of
from casewright.stores.engines.engine import Point
from casewright.stores.engines.file_sums import changed, file_sums
from casewright.stores.engines.folder import damaged, open_client
from casewright.stores.engines.qdrant_engine import QdrantEngine
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.room import check_room
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from qdrant_client import models

#: At the top of the folder: the checksums of its files as a clean close left them.
CLOSED = "closed.json"
#: There, too: what the collections are made like, as local mode wrote it.
META = "meta.json"


class LocalEngine(QdrantEngine):
    """An engine over a folder that is held.

    Args:
        folder: The folder.
        folder_lock: What keeps others out of it.
        deadline: Until when to wait for another user of Qdrant, by ``time.monotonic``.

    Raises:
        StoreDamagedError: Its files cannot be read, or are not as they were left.
        StoreLockedError: Another user of Qdrant has it open beyond the deadline.
        StoreError: It cannot be used.
    """

    def __init__(self, folder: Path, folder_lock: IO[str], deadline: float) -> None:
        self._folder = folder
        closed = check_local(folder)
        super().__init__(open_client(folder, deadline), str(folder), folder_lock)
        try:
            if not closed:
                self.check_cases()
            (folder / CLOSED).unlink(missing_ok=True)
        except BaseException:
            self._client.close()
            raise

    def check_cases(self) -> dict[str, int]:
        """Read every case, and return how many each collection has.

        Raises:
            StoreDamagedError: One is not as it was written.
        """
        names = [described.name for described in self._client.get_collections().collections]
        return {
            name: len([self._point(record) for record in self._scrolled(name, vectors=True)])
            for name in names
        }

    def close(self) -> None:
        """Close the client, and leave the files' checksums; see ``Engine``."""
        with self._lock:
            if self._folder_lock is None or self._folder_lock.closed:
                return
            self._client.close()
            # The folder may have been removed, or its disk be full: the next use checks the cases.
            with suppress(OSError):
                meta = (self._folder / META).read_text(encoding="utf-8")
                left = {"files": _sums(self._folder), "meta": meta}
                write_whole(self._folder / CLOSED, json.dumps(left))
            self._folder_lock.close()

    def _batch(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> models.Batch:
        check_room(self._folder, 4 * vectors.nbytes)
        kept = [
            {**payload, SUMS: sums_of(id_, [payload_text(payload)], vector)}
            for id_, vector, payload in zip(ids, vectors, payloads, strict=True)
        ]
        return super()._batch(ids, vectors, kept)

    def _point(self, record: Any, score: float = 0.0) -> Point:
        point = super()._point(record, score)
        payload = {name: value for name, value in point.payload.items() if name != SUMS}
        try:
            check_sums(point.payload, point.id, [payload_text(payload)], point.vector)
        except (ValueError, TypeError) as error:
            raise damaged(self._folder, f"the case {point.id} cannot be read: {error}") from error
        return Point(point.id, payload, score, point.vector)


def check_local(folder: Path) -> bool:
    """Compare a folder's files with what its last close left; say whether there was a clean one.

    Raises:
        StoreDamagedError: A file is missing, or is not as closing left it.
    """
    try:
        left = json.loads((folder / CLOSED).read_text(encoding="utf-8"))["files"]
        name = changed(folder, left, None)
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise damaged(folder, f"its {CLOSED} cannot be read") from error
    if name:
        raise damaged(folder, f"{name} is missing or was changed")
    return True


def restore_local(folder: Path) -> None:
    """Have the next use read all cases, of collections made like the last clean close left them."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        left = json.loads((folder / CLOSED).read_text(encoding="utf-8"))
        write_whole(folder / META, left["meta"])
    (folder / CLOSED).unlink(missing_ok=True)


def _sums(folder: Path) -> dict[str, list[int]]:
    found = file_sums(folder)
    return {n: sums for n, sums in found.items() if n == META or n.startswith("collection/")}


def payload_text(payload: Mapping[str, Any]) -> str:
    """Return what the checksum of a payload's text is made of."""
    return json.dumps(payload, sort_keys=True, ensure_ascii=False)
