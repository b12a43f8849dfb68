"""The chunks before and after a chunk in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casewright.stores.case import Case
from casewright.stores.engines.engine import Where
from casewright.stores.select import check_counts
from casewright.stores.store import CaseStore

#: Where a chunk stands: its root, its file below that, and its position there, from 1.
Place = tuple[str, str, int]


def neighbours(store: CaseStore, case: Case, reach: int = 1) -> list[Case]:
    """Return the chunks around a chunk in its file, in the file's order, without itself.

    Args:
        store: Where the file was ingested into.
        case: A chunk; a case that is none has no neighbours.
        reach: How many chunks to each side, at least 0.

    Raises:
        InputError: ``reach`` is no such number.
        StoreError: The store cannot be read.
    """
    return neighbours_of(store, [case], reach)[case.id]


def neighbours_of(
    store: CaseStore, cases: Sequence[Case], reach: int = 1
) -> Mapping[str, list[Case]]:
    """Return the ``neighbours`` of several chunks by the chunks' ids, by one query for all.

    Raises:
        InputError: ``reach`` is no whole number of at least 0.
        StoreError: The store cannot be read.
    """
    check_counts(0, reach=reach)
    wanted: dict[str, list[Place]] = {case.id: [] for case in cases}
    for case in cases:
        place = _place(case)
        if place is not None:
            root, source, position = place
            first, last = max(1, position - reach), min(position + reach, _chunks(case))
            around = [(root, source, number) for number in range(first, last + 1)]
            wanted[case.id] = [other for other in around if other != place]
    places = {place for some in wanted.values() for place in some}
    found = _at(store, places) if places else {}
    return {id_: [found[place] for place in some if place in found] for id_, some in wanted.items()}


def _at(store: CaseStore, places: set[Place]) -> dict[Place, Case]:
    roots, sources, positions = (sorted(set(part)) for part in zip(*places, strict=True))
    # It finds more than asked for, each file's positions in every other file: far less than a
    # query for each file takes.
    where: Where = {"root": roots, "source": sources, "position": positions}
    return {place: case for case in store.all(where) if (place := _place(case)) is not None}


def _chunks(case: Case) -> int:
    """Return how many chunks a chunk's file has."""
    chunks = case.metadata.get("chunks")
    return chunks if isinstance(chunks, int) else 0


def _place(case: Case) -> Place | None:
    root, source, position = (case.metadata.get(name) for name in ("root", "source", "position"))
    if isinstance(root, str) and isinstance(source, str) and isinstance(position, int):
        return root, source, position
    return None
