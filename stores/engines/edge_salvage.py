"""A damaged shard built anew of the cases in it that are sound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreDamagedError
from casewright.stores.engines.case_sums import SUMS
from casewright.stores.engines.edge_files import stored_cases
from casewright.stores.engines.edge_payload import read_payload
from casewright.stores.engines.edge_shard import LAYOUT_COPY, SHARD, ShardFolder

#: A payload and its vector; of a case that cannot be read, ``None``.
Stored = tuple[Mapping[str, Any], "NDArray[np.float32]"] | None


def salvaged(disk: ShardFolder, *, loading: bool) -> dict[str, Any]:
    """Put a shard of what is sound in a damaged one's place, which is kept beside it.

    Args:
        disk: The shard, which is not loaded.
        loading: Whether Edge reads it first, with what stands in its log; without, only the files
            are read.

    Returns:
        ``cases``, how many are kept; ``lost``, how many are not, and ``back``, how many more are
        kept than there were, which had been deleted, both ``None`` where it is not known;
        ``texts``, those of lost cases whose text is sound; ``beside``, where the damaged shard is.

    Raises:
        StoreDamagedError: It has lost its layout, or Edge cannot load it.
    """
    try:
        dimension, layout = disk.remembered()
    except StoreDamagedError:
        dimension, layout = disk.remembered(LAYOUT_COPY)
    wanted: int | None = None
    with suppress(StoreDamagedError):
        wanted = (disk.expected() or (None, None))[1]
    kept: set[str] = set()
    texts: dict[str, Any] = {}

    def sound() -> Iterator[tuple[str, Mapping[str, Any], NDArray[np.float32]]]:
        for stored in _everything(disk, dimension, wanted, loading, kept):
            if stored is None:
                continue
            payload, vector = stored
            with suppress(ValueError, KeyError, TypeError):
                id_ = payload["id"]
                texts[id_] = read_payload(payload, id_, None)
                read_payload(payload, id_, vector)
                del texts[id_]
                if id_ not in kept:
                    kept.add(id_)
                    yield id_, payload, vector

    beside = disk.replace(dimension, layout, sound())
    lost = None if wanted is None else max(0, wanted - len(kept))
    back = None if wanted is None else max(0, len(kept) - wanted)
    left = [{"id": id_, **case} for id_, case in texts.items() if id_ not in kept]
    kept_and_lost = {"cases": len(kept), "lost": lost, "back": back}
    return {**kept_and_lost, "texts": left, "beside": str(beside)}


def _everything(
    disk: ShardFolder, dimension: int, wanted: int | None, loading: bool, kept: set[str]
) -> Iterator[Stored]:
    if loading:
        yield from _loaded(disk)
    # What Edge drops of a damaged file stands in the others, and behind that what has no id any
    # more. Only where some are missing: what was deleted last has none, too.
    for mapped in (True, False):
        if loading if wanted is None else len(kept) >= wanted:
            return
        for stored in stored_cases(disk.path / SHARD, dimension, mapped=mapped):
            # Without checksums nobody could tell whether they belong together.
            if stored is not None and SUMS in stored[0]:
                yield stored


def _loaded(disk: ShardFolder) -> Iterator[Stored]:
    from qdrant_edge import EdgeShard

    with disk.copied() as copy, copy.translated(reading=True):
        shard = EdgeShard.load(str(copy.path / SHARD))
        for _, record in copy.points(shard):
            payload = {"id": str(record.id), **(record.payload or {})}
            yield payload, np.asarray(record.vector, np.float32)
