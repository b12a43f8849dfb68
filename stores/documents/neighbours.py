"""The chunks before and after a chunk in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casewright.stores.case import Case
from casewright.stores.documents.places import around, covering, place_of
from casewright.stores.select import check_counts
from casewright.stores.store import CaseStore


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
    wanted = {case.id: around(case, reach) for case in cases}
    places = {place for some in wanted.values() for place in some}
    found = {place_of(case): case for case in store.all(covering(places))} if places else {}
    return {id_: [found[place] for place in some if place in found] for id_, some in wanted.items()}
