"""A collection of Qdrant Edge on disk: a shard, what it remembers, and what closing it left."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, StoreDamagedError, StoreError, cleaned
from casewright.stores.engines.engine import Point
from casewright.stores.engines.folder import damaged, in_use
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

SHARDS = "shards"
#: In a collection's folder: the shard, what it remembers, and its files as a clean close left them.
SHARD, LAYOUT, CLOSED = "shard", "layout.json", "closed.json"
#: Bytes of a file that its checksum is of.
HEAD = 1 << 16
#: Errors of the system that are no damage: memory, rights, open files, room, read-only, quota.
SYSTEM = re.compile(r"\(os error (?:12|13|23|24|28|30|122)\)")


def folder_name(collection: str) -> str:
    """Return a collection's name as a folder's; ``urllib.parse.unquote`` turns it back.

    Capitals are encoded too, since some disks do not tell them from small letters, and dots,
    since what is made or removed ends in one.

    Raises:
        InputError: It has no letters, or some that are no Unicode.
    """
    try:
        raw = collection.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A collection has the name {collection!a}: that is no Unicode."
        ) from error
    if not raw:
        raise InputError("A collection has an empty name. Give it at least one letter.")
    return re.sub(rb"[^a-z0-9_-]", lambda found: b"%%%02x" % found[0][0], raw).decode()


@dataclass(frozen=True, slots=True)
class ShardFolder:
    """Where a collection is kept. It is there, whole, or it is not: renaming makes and removes it.

    Attributes:
        store: The store's folder, whose lock is held.
        collection: The collection's name.
    """

    store: Path
    collection: str

    @property
    def path(self) -> Path:
        """The collection's own folder."""
        return self.store / SHARDS / folder_name(self.collection)

    def make(self, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make an empty collection."""
        from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams

        new = self._beside("new")
        new.mkdir(parents=True)
        config = EdgeConfig(
            vectors=EdgeVectorParams(size=dimension, distance=Distance.Dot), wal_enabled=True
        )
        with self.translated(reading=False):
            EdgeShard.create(str(new / SHARD), config).close()
        kept = {"dimension": dimension, "layout": dict(layout)}
        write_whole(new / LAYOUT, json.dumps(kept))
        write_whole(new / CLOSED, json.dumps(_marks(new / SHARD)))
        new.rename(self.path)

    def remembered(self) -> tuple[int, Mapping[str, Any]]:
        """Return dimension and layout.

        Raises:
            StoreDamagedError: They cannot be read.
        """
        try:
            kept = json.loads((self.path / LAYOUT).read_text(encoding="utf-8"))
            return int(kept["dimension"]), dict(kept["layout"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"its {LAYOUT} cannot be read") from error

    def check(self) -> None:
        """Find what Edge would take for fewer cases, and write over; for a shard not loaded.

        Raises:
            StoreDamagedError: A file is missing, or is not as closing left it.
        """
        shard = self.path / SHARD
        if not any(shard.glob("segments/*/version.info")):
            raise self._damaged("it has no segment")
        try:
            left = json.loads((self.path / CLOSED).read_text(encoding="utf-8"))
            there = _marks(shard)
            changed = sorted(name for name in left if there.get(name) != left[name])
        except FileNotFoundError:
            # Its process was killed: what it had not written out stands in the shard's log.
            return
        except (ValueError, TypeError) as error:
            raise self._damaged(f"its {CLOSED} cannot be read") from error
        if changed:
            raise self._damaged(f"{changed[0]} is missing or was changed")

    def load(self) -> EdgeShard:
        """Load the shard; nobody else may have it loaded.

        Raises:
            StoreDamagedError: Its files cannot be read; no case in them is touched.
        """
        from qdrant_edge import EdgeShard

        self.check()
        # From here on, Edge changes the files, even where it fails.
        (self.path / CLOSED).unlink(missing_ok=True)
        with self.translated(reading=True):
            return EdgeShard.load(str(self.path / SHARD))

    def close(self, shard: EdgeShard) -> None:
        """Close the shard; waits for the calls that are in it."""
        # What cannot be written out stands in the shard's log, or its folder was removed.
        with suppress(StoreError, OSError):
            with self.translated(reading=False):
                shard.close()
            write_whole(self.path / CLOSED, json.dumps(_marks(self.path / SHARD)))

    def point(
        self, found: Any, score: float = 0.0, vector: NDArray[np.float32] | None = None
    ) -> Point:
        """Return a point or record of Edge as a stored case.

        Raises:
            StoreDamagedError: Its payload cannot be read.
        """
        try:
            return Point(str(found.id), json.loads(found.payload["json"]), score, vector)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"the case {found.id} cannot be read") from error

    def remove(self) -> None:
        """Remove the collection, damaged or not; the shard is closed."""
        gone = self._beside("gone")
        if self.path.exists():
            self.path.rename(gone)
            shutil.rmtree(gone)

    def _beside(self, ending: str) -> Path:
        """Return a place for a collection in the making, or going, freed of an interrupted one."""
        place = self.path.with_name(f"{self.path.name}.{ending}")
        if place.exists():
            shutil.rmtree(place)
        return place

    @contextmanager
    def translated(self, *, reading: bool) -> Iterator[None]:
        """Raise what Edge raises as a store error; what cannot be read is damaged."""
        try:
            yield
        except (StoreError, InputError, OSError):
            raise
        except BaseException as error:
            # A panic of Rust is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if "WouldBlock" in str(error):
                raise in_use(self.store) from error
            reason = cleaned(str(error), 200)
            if reading and not SYSTEM.search(str(error)):
                raise self._damaged(reason) from error
            raise StoreError(
                f"The collection {self.collection!r} at {self.store} failed: {reason}. Check the "
                "disk's room and rights, and what was asked for or written."
            ) from error

    def _damaged(self, reason: str) -> StoreDamagedError:
        return damaged(self.store, f"of its collection {self.collection!r}, {reason}")


def uuids(ids: Sequence[str]) -> list[UUID | int | str]:
    """Return ids as Edge takes them.

    Raises:
        InputError: One is no UUID.
    """
    try:
        return [UUID(text) for text in ids]
    except ValueError as error:
        raise InputError(f"An id of a case cannot be used: {error}. Ids are UUIDs.") from error


def _marks(folder: Path) -> dict[str, list[int]]:
    """Return size and checksum of each file: of its head, since all of it would take long."""
    found = {}
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                head = opened.read(HEAD)
            found[str(file.relative_to(folder))] = [file.stat().st_size, zlib.crc32(head)]
    return found
