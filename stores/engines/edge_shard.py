"""A collection of Qdrant Edge on disk: a shard, what it remembers, and what closing it left."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, StoreDamagedError, StoreError, cleaned
from casewright.stores.engines.case_count import CaseCount
from casewright.stores.engines.edge_payload import read_payload
from casewright.stores.engines.engine import Point
from casewright.stores.engines.file_blocks import copy_files, written_size
from casewright.stores.engines.file_sums import SAMPLE, changed, file_sums
from casewright.stores.engines.folder import damaged, in_use
from casewright.stores.room import SPARE, check_room
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

SHARDS = "shards"
#: In a collection's folder: the shard, what it remembers, the checksums of its files as a clean
#: close left them, and how many cases there are.
SHARD, LAYOUT, CLOSED, COUNT = "shard", "layout.json", "closed.json", "count.bin"
#: What it remembers, once more: without it, its cases could not be told apart.
LAYOUT_COPY = "layout.copy.json"
#: A case as it is kept: its id, its payload, its vector.
Stored = tuple[str, Mapping[str, Any], NDArray[np.float32]]
#: Cases a page when a whole collection is read.
PAGE = 1000
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
    """The folder of a collection, there whole or not at all: renaming makes and removes it.

    Attributes:
        store: The store's folder, whose lock is held.
        collection: The collection's name.
        copy: Where this copy of it is; ``None`` for itself.
    """

    store: Path
    collection: str
    copy: Path | None = None

    @property
    def path(self) -> Path:
        """The collection's own folder."""
        return self.copy or self.store / SHARDS / folder_name(self.collection)

    def make(self, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make an empty collection."""
        self._made(dimension, layout, ()).rename(self.path)

    def replace(self, dimension: int, layout: Mapping[str, Any], cases: Iterable[Stored]) -> Path:
        """Put a new collection in the place of a damaged one, and return where that is now.

        Args:
            dimension: Of a vector.
            layout: To be remembered.
            cases: Of each its id, payload and vector.
        """
        new, beside = self._made(dimension, layout, cases), self._beside("damaged")
        self.path.rename(beside)
        new.rename(self.path)
        return beside

    def _made(self, dimension: int, layout: Mapping[str, Any], cases: Iterable[Stored]) -> Path:
        from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams, UpdateOperation
        from qdrant_edge import Point as EdgePoint

        new = self._beside("new")
        new.mkdir(parents=True)
        config = EdgeConfig(
            vectors=EdgeVectorParams(size=dimension, distance=Distance.Dot), wal_enabled=True
        )
        count, waiting = 0, iter(cases)
        with self.translated(reading=False):
            shard = EdgeShard.create(str(new / SHARD), config)
            while batch := [
                EdgePoint(UUID(i), v.tolist(), dict(p)) for i, p, v in islice(waiting, PAGE)
            ]:
                check_room(new)
                shard.update(UpdateOperation.upsert_points(batch))
                count += len(batch)
            shard.close()
        kept = {"dimension": dimension, "layout": dict(layout), "sum": _sum(dimension, layout)}
        for name in (LAYOUT, LAYOUT_COPY):
            write_whole(new / name, json.dumps(kept))
        CaseCount(new / COUNT).write(count, count)
        write_whole(new / CLOSED, json.dumps({"files": file_sums(new / SHARD)}))
        return new

    def remembered(self, name: str = LAYOUT) -> tuple[int, Mapping[str, Any]]:
        """Return dimension and layout, by the file that has them.

        Raises:
            StoreDamagedError: They cannot be read.
        """
        kept = self._kept(name)
        return kept["dimension"], kept["layout"]

    def _kept(self, name: str = LAYOUT) -> dict[str, Any]:
        try:
            kept = dict(json.loads((self.path / name).read_text(encoding="utf-8")))
            # What was made before there were checksums has none.
            if "sum" in kept and kept["sum"] != _sum(kept["dimension"], kept["layout"]):
                raise ValueError
            return {**kept, "dimension": int(kept["dimension"]), "layout": dict(kept["layout"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(f"its {name} cannot be read") from error

    def check(self, most: int | None = SAMPLE) -> bool:
        """Compare the files of a shard that is not loaded with what its last close left.

        Args:
            most: See ``file_sums.changed``.

        Returns:
            Whether there was a clean close. Where there was none, its process was killed: what that
            had not written out stands in the shard's log.

        Raises:
            StoreDamagedError: A file is missing, or is not as closing left it.
        """
        if not any((self.path / SHARD).glob("segments/*/version.info")):
            raise self.damaged("it has no segment")
        self.expected()
        try:
            left = json.loads((self.path / CLOSED).read_text(encoding="utf-8")).get("files")
            # An older version left other checksums there.
            if left is None:
                return False
            name = changed(self.path / SHARD, left, most)
        except FileNotFoundError:
            return False
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise self.damaged(f"its {CLOSED} cannot be read") from error
        if name:
            raise self.damaged(f"{name} is missing or was changed")
        return True

    def expected(self) -> tuple[int, int] | None:
        """Return the fewest and the most cases that there are; ``None`` where it is not known.

        Raises:
            StoreDamagedError: It was known, and cannot be read.
        """
        found = self.count.read()
        if found is None and "sum" in self._kept():
            raise self.damaged(f"its {COUNT} is missing")
        return found

    @property
    def count(self) -> CaseCount:
        """Return the file that holds the number of cases."""
        return CaseCount(self.path / COUNT)

    def load(self) -> EdgeShard:
        """Load the shard, which was checked; nobody else may have it loaded.

        Raises:
            StoreDamagedError: Its files cannot be read, or it has fewer or more cases than were
                written; no case in them is touched.
        """
        from qdrant_edge import EdgeShard

        # What is mapped into memory and finds no room ends the process.
        check_room(self.path)
        wanted = self.expected()
        # From here on, Edge changes the files, even where it fails.
        (self.path / CLOSED).unlink(missing_ok=True)
        with self.translated(reading=True):
            shard = EdgeShard.load(str(self.path / SHARD))
            found = shard.info().points_count
        if wanted is not None and not wanted[0] <= found <= wanted[1]:
            told = wanted[0] if wanted[0] == wanted[1] else f"{wanted[0]} to {wanted[1]}"
            raise self.damaged(f"{found} cases are left of {told}")
        self.count.write(found, found)
        return shard

    @contextmanager
    def copied(self) -> Iterator[ShardFolder]:
        """Give a copy, which is removed in the end; what loads a damaged shard changes it.

        Where there is no room for one, it is the shard itself.
        """
        place = self._beside("looked")
        if shutil.disk_usage(self.path).free < written_size(self.path) + 2 * SPARE:
            yield self
            return
        try:
            yield replace(self, copy=copy_files(self.path, place))
        finally:
            shutil.rmtree(place)

    def points(self, shard: EdgeShard) -> Iterator[tuple[Point | None, Any]]:
        """Yield every case with its vector, and as Edge gives it; ``None`` for a damaged one."""
        for record in scrolled(shard, with_vector=True):
            try:
                yield self.point(record, vector=np.asarray(record.vector, np.float32)), record
            except StoreDamagedError:
                yield None, record

    def close(self, shard: EdgeShard) -> None:
        """Close the shard; waits for the calls that are in it."""
        # What cannot be written out stands in the shard's log, or its folder was removed.
        with suppress(StoreError, OSError):
            with self.translated(reading=False):
                shard.close()
            write_whole(self.path / CLOSED, json.dumps({"files": file_sums(self.path / SHARD)}))

    def point(
        self, found: Any, score: float = 0.0, vector: NDArray[np.float32] | None = None
    ) -> Point:
        """Return a point or record of Edge as a stored case.

        Raises:
            StoreDamagedError: Its payload cannot be read.
        """
        id_ = str(found.id)
        try:
            return Point(id_, read_payload(found.payload, id_, vector), score, vector)
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(f"the case {id_} cannot be read") from error

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
                raise self.damaged(reason) from error
            raise StoreError(
                f"The collection {self.collection!r} at {self.store} failed: {reason}. Check the "
                "disk's room and rights, and what was asked for or written."
            ) from error

    def damaged(self, reason: str) -> StoreDamagedError:
        """Return the error for a collection whose files cannot be read."""
        return damaged(self.store, f"of its collection {self.collection!r}, {reason}")


def scrolled(shard: EdgeShard, **asked: Any) -> Iterator[Any]:
    """Yield the records of a shard with their payloads, read page by page.

    Args:
        shard: Loaded.
        asked: What ``ScrollRequest`` takes beside: ``filter``, ``with_vector``.
    """
    from qdrant_edge import ScrollRequest

    offset: Any = None
    while True:
        page = ScrollRequest(offset=offset, limit=PAGE, with_payload=True, **asked)
        records, offset = shard.scroll(page)
        yield from records
        if offset is None:
            return


def uuids(ids: Sequence[str]) -> list[UUID | int | str]:
    """Return ids as Edge takes them.

    Raises:
        InputError: One is no UUID.
    """
    try:
        return [UUID(text) for text in ids]
    except ValueError as error:
        raise InputError(f"An id of a case cannot be used: {error}. Ids are UUIDs.") from error


def _sum(dimension: int, layout: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps([dimension, layout], sort_keys=True).encode())
