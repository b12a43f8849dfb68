"""Where a chunk stands: its root, its file below that, and its position there."""

from __future__ import annotations

from collections.abc import Collection

from casewright.stores.case import Case
from casewright.stores.engines.engine import Where

#: Root, file, and position in the file, from 1.
Place = tuple[str, str, int]


def place_of(case: Case) -> Place | None:
    """Return where a chunk stands, as ``ingest`` says it; ``None`` of other cases."""
    root, source, position = (case.metadata.get(name) for name in ("root", "source", "position"))
    if isinstance(root, str) and isinstance(source, str) and isinstance(position, int):
        return root, source, position
    return None


def around(case: Case, reach: int) -> list[Place]:
    """Return the places before and after a chunk in its file, in order; none of other cases.

    Args:
        case: A chunk, which knows how many its file has.
        reach: How many places to each side, at least 0.
    """
    place, chunks = place_of(case), case.metadata.get("chunks")
    if place is None or not isinstance(chunks, int):
        return []
    root, source, position = place
    first, last = max(1, position - reach), min(position + reach, chunks)
    return [(root, source, number) for number in range(first, last + 1) if number != position]


def covering(places: Collection[Place]) -> Where:
    """Return a condition that all chunks at some places meet, and few others.

    Others are at one file's positions in another file: reading them takes far less than a query
    for each file.
    """
    roots, sources, positions = (sorted(set(part)) for part in zip(*places, strict=True))
    return {"root": roots, "source": sources, "position": positions}
