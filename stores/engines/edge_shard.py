"""A collection of Qdrant Edge on disk: a shard with its layout, checksums and number of cases."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, StoreDamagedError, StoreError, cleaned
from casewright.stores.engines import checksums
from casewright.stores.engines.checksums import CLOSED, checksums_of
from casewright.stores.engines.engine import Point
from casewright.stores.engines.folder import damaged_error, in_use_error
from casewright.stores.engines.payload import TAGS, read_edge_payload
from casewright.stores.room import SPARE_BYTES, check_room
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

#: In a store's folder: the folder of the collections.
SHARDS = "shards"
#: In a collection's folder: the folder of the shard, and the file with the number of cases.
SHARD, COUNT_FILE = "shard", "count.bin"
#: The file of the layout (the schema's facets and quality), and the file of a copy, since no case
#: can be read without the layout.
LAYOUT_FILE, LAYOUT_COPY = "layout.json", "layout.copy.json"
#: A stored case: id, payload, vector.
RawCase = tuple[str, Mapping[str, Any], NDArray[np.float32]]
#: Cases per page when a collection is read.
PAGE_SIZE = 1000
#: System errors that are no sign of damage: memory, permission, number of open files, disk, quota.
SYSTEM_ERROR = re.compile(r"\(os error (?:12|13|23|24|28|30|122)\)")


def folder_name(collection: str) -> str:
    """Return a folder name for a collection; ``urllib.parse.unquote`` decodes it.

    Capitals are encoded, since some disks treat "A" and "a" alike. Dots are encoded, since they
    mark other folders (``_sibling``). Raise ``InputError`` for an empty or invalid Unicode name.
    """
    try:
        encoded = collection.encode()
    except UnicodeEncodeError as error:
        problem = f"A collection has the name {collection!a}: that is not valid Unicode."
        raise InputError(problem) from error
    if not encoded:
        raise InputError("A collection has an empty name. Give it at least one letter.")
    return re.sub(rb"[^a-z0-9_-]", lambda match: b"%%%02x" % match[0][0], encoded).decode()


@dataclass(frozen=True, slots=True)
class ShardFolder:
    """The folder of a collection and its shard; renaming creates and removes the folder atomically.

    The caller holds the lock of the store's folder. ``copy`` is the path of a temporary copy of the
    collection if this object refers to a copy, else ``None``.
    """

    store: Path
    collection: str
    copy: Path | None = None

    @property
    def path(self) -> Path:
        """The collection's folder."""
        return self.copy or self.store / SHARDS / folder_name(self.collection)

    def write_count(self, minimum: int, maximum: int) -> None:
        """Write bounds of the number of cases."""
        checksums.write_count(self.path / COUNT_FILE, minimum, maximum)

    def make(self, dimension: int, layout: Mapping[str, Any]) -> None:
        """Create an empty collection."""
        self._write(dimension, layout, ()).rename(self.path)

    def replace(self, dimension: int, layout: Mapping[str, Any], cases: Iterable[RawCase]) -> Path:
        """Replace a damaged collection by these cases; return the path of the damaged files."""
        new, damaged_path = self._write(dimension, layout, cases), self._sibling("damaged")
        self.path.rename(damaged_path)
        new.rename(self.path)
        return damaged_path

    def _write(self, dimension: int, layout: Mapping[str, Any], cases: Iterable[RawCase]) -> Path:
        """Write a collection to a folder beside this one, and return that folder."""
        from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams, UpdateOperation
        from qdrant_edge import Point as EdgePoint

        new_folder = self._sibling("new")
        new_folder.mkdir(parents=True)
        params = EdgeVectorParams(size=dimension, distance=Distance.Dot)
        config = EdgeConfig(vectors=params, wal_enabled=True)
        count, remaining = 0, iter(cases)
        with self.converted_errors(reading=False):
            shard = EdgeShard.create(str(new_folder / SHARD), config)
            while batch := [
                EdgePoint(UUID(i), v.tolist(), dict(p)) for i, p, v in islice(remaining, PAGE_SIZE)
            ]:
                check_room(new_folder)
                shard.update(UpdateOperation.upsert_points(batch))
                count += len(batch)
            shard.close()
        checksum = _checksum(dimension, layout)
        content = {"dimension": dimension, "layout": dict(layout), "sum": checksum}
        for name in (LAYOUT_FILE, LAYOUT_COPY):
            write_whole(new_folder / name, json.dumps(content))
        checksums.write_count(new_folder / COUNT_FILE, count, count)
        write_whole(new_folder / CLOSED, json.dumps({"files": checksums_of(new_folder / SHARD)}))
        return new_folder

    def layout(self, file: str = LAYOUT_FILE) -> tuple[int, Mapping[str, Any]]:
        """Return dimension and layout from a file; raise ``StoreDamagedError`` for damage."""
        content = self._layout_content(file)
        return content["dimension"], content["layout"]

    def _layout_content(self, file: str = LAYOUT_FILE) -> dict[str, Any]:
        try:
            content = dict(json.loads((self.path / file).read_text(encoding="utf-8")))
            dimension, layout = content["dimension"], content["layout"]
            # Older versions wrote no checksum.
            if "sum" in content and content["sum"] != _checksum(dimension, layout):
                raise ValueError
            return {**content, "dimension": int(dimension), "layout": dict(layout)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(f"{file} cannot be read") from error

    def check(self, max_parts: int | None = checksums.SAMPLED_PARTS) -> bool:
        """Compare an unloaded shard's files with their checksums at the last clean close.

        Return ``False`` if the shard was not closed cleanly: its log may have writes that the files
        lack. Raise ``StoreDamagedError`` for a missing or changed file. See ``closed_cleanly``.
        """
        if not any((self.path / SHARD).glob("segments/*/version.info")):
            raise self.damaged("there is no segment")
        self.count_bounds()  # raises an error for damage
        return checksums.closed_cleanly(self.path, self.path / SHARD, self.damaged, max_parts)

    def count_bounds(self) -> tuple[int, int] | None:
        """Return bounds of the number of cases; ``None`` for a collection of an older version."""
        bounds = checksums.read_count(self.path / COUNT_FILE)
        if bounds is None and "sum" in self._layout_content():
            raise self.damaged(f"{COUNT_FILE} is missing")
        return bounds

    def load(self) -> EdgeShard:
        """Load the shard, which was checked before and is not loaded elsewhere.

        Raise ``StoreDamagedError`` if Edge cannot load the files, or the number of cases is wrong.
        """
        from qdrant_edge import EdgeShard, KeywordIndexParams, UpdateOperation

        # If a mapped file cannot grow, because the disk is full, the system kills the process.
        check_room(self.path)
        bounds, was_closed = self.count_bounds(), (self.path / CLOSED).exists()
        # From here on, Edge changes the files, even if loading fails.
        (self.path / CLOSED).unlink(missing_ok=True)
        with self.converted_errors(reading=True):
            shard = EdgeShard.load(str(self.path / SHARD))
            count = shard.info().points_count
            # Without an index, a condition reads every payload. A kill may damage the index.
            if not (was_closed and TAGS in shard.info().payload_schema):
                shard.update(UpdateOperation.delete_field_index(TAGS))
                shard.update(UpdateOperation.create_field_index(TAGS, KeywordIndexParams()))
        if bounds is not None and not bounds[0] <= count <= bounds[1]:
            expected = bounds[0] if bounds[0] == bounds[1] else f"{bounds[0]} to {bounds[1]}"
            raise self.damaged(f"{count} cases are left of {expected}")
        self.write_count(count, count)
        return shard

    @contextmanager
    def copied(self) -> Iterator[ShardFolder]:
        """Yield a temporary copy to load; yield ``self`` if the disk has no room for a copy."""
        target = self._sibling("copy")
        files = (file for file in self.path.rglob("*") if file.is_file())
        # The size on the disk, since the files are sparse.
        size = sum(file.stat().st_blocks * 512 for file in files)
        if shutil.disk_usage(self.path).free < size + 2 * SPARE_BYTES:
            yield self
            return
        try:
            yield ShardFolder(self.store, self.collection, checksums.copy_files(self.path, target))
        finally:
            shutil.rmtree(target)

    def close(self, shard: EdgeShard) -> None:
        """Close the shard and write the checksums of its files; ignore errors."""
        # An error loses no data: the shard's log has the data, or the folder was removed.
        with suppress(StoreError, OSError):
            with self.converted_errors(reading=False):
                shard.close()
            write_whole(self.path / CLOSED, json.dumps({"files": checksums_of(self.path / SHARD)}))

    def point(
        self, record: Any, score: float = 0.0, vector: NDArray[np.float32] | None = None
    ) -> Point:
        """Return a record and its vector as a point; raise ``StoreDamagedError`` for damage."""
        id_ = str(record.id)
        try:
            return Point(id_, read_edge_payload(record.payload, id_, vector), score, vector)
        except (ValueError, KeyError, TypeError) as error:
            reason = cleaned(str(error), 200)
            raise self.damaged(f"the case {id_} cannot be read: {reason}") from error

    def remove(self) -> None:
        """Remove the collection, damaged or not; its shard must be closed."""
        removed_path = self._sibling("gone")
        if self.path.exists():
            self.path.rename(removed_path)
            shutil.rmtree(removed_path)

    def _sibling(self, ending: str) -> Path:
        """Return a path beside the collection's folder; remove what an earlier call left there."""
        if (path := self.path.with_name(f"{self.path.name}.{ending}")).exists():
            shutil.rmtree(path)
        return path

    @contextmanager
    def converted_errors(self, *, reading: bool) -> Iterator[None]:
        """Convert Edge's errors; while ``reading``, an error means damage, except system errors."""
        try:
            yield
        except (StoreError, InputError, OSError):
            raise
        except BaseException as error:
            # A Rust panic is a BaseException.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if "WouldBlock" in str(error):
                raise in_use_error(self.store) from error
            reason = cleaned(str(error), 200)
            if reading and not SYSTEM_ERROR.search(str(error)):
                raise self.damaged(reason) from error
            problem = f"The collection {self.collection!r} at {self.store} failed: {reason}."
            advice = "Check the disk's free space, the folder's permissions, and the request."
            raise StoreError(f"{problem} {advice}") from error

    def damaged(self, reason: str) -> StoreDamagedError:
        """Return the error for a damaged collection."""
        return damaged_error(self.store, f"in its collection {self.collection!r}, {reason}")


def scroll_records(shard: EdgeShard, **settings: Any) -> Iterator[Any]:
    """Yield a shard's records with payloads; ``settings`` are arguments of ``ScrollRequest``."""
    from qdrant_edge import ScrollRequest

    offset: Any = None
    while True:
        request = ScrollRequest(offset=offset, limit=PAGE_SIZE, with_payload=True, **settings)
        records, offset = shard.scroll(request)
        yield from records
        if offset is None:
            return


def uuids(ids: Sequence[str]) -> list[UUID | int | str]:
    """Return ids as UUIDs for Edge; raise ``InputError`` for an id that is not a UUID."""
    try:
        return [UUID(text) for text in ids]
    except ValueError as error:
        raise InputError(f"An id of a case cannot be used: {error}. Ids are UUIDs.") from error


def _checksum(dimension: int, layout: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps([dimension, layout], sort_keys=True).encode())
