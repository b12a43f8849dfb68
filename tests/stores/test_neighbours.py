"""The chunks before and after a chunk in its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.stores import Case, CaseStore
from casewright.stores.documents.ingest import ingest
from casewright.stores.documents.neighbours import neighbours, neighbours_of
from tests.stores.document_files import document_store, paragraph, write
from tests.stores.helpers import note

CHUNKS = 6


@pytest.fixture(scope="module")
def store(shared_place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CaseStore]:
    """Two folders with files of the same names, each of several chunks, and a case of another
    kind.
    """
    made: Path = tmp_path_factory.mktemp("trees")
    with document_store(place=shared_place) as store:
        for folder in ("one", "two"):
            files = {
                f"{name}.txt": "\n\n".join(paragraph(f"{folder}{name}{n}") for n in range(CHUNKS))
                for name in ("a", "b")
            }
            ingest(store, write(made / folder, files), root=folder)
        store.add([note("what is red", "an apple")])
        yield store


def chunk(store: CaseStore, root: str, source: str, position: int) -> Case:
    (found,) = store.all({"root": root, "source": source, "position": position})
    return found


def positions(cases: list[Case]) -> list[int]:
    return [case.metadata["position"] for case in cases]


@pytest.mark.parametrize(
    ("position", "reach", "around"),
    [
        (3, 1, [2, 4]),
        (3, 2, [1, 2, 4, 5]),
        (1, 1, [2]),
        (1, 3, [2, 3, 4]),
        (CHUNKS, 2, [4, 5]),
        (3, 10**12, [1, 2, 4, 5, 6]),
        (3, 0, []),
    ],
)
def test_neighbours_are_those_within_reach_in_the_files_order(
    store: CaseStore, position: int, reach: int, around: list[int]
) -> None:
    found = neighbours(store, chunk(store, "one", "a.txt", position), reach)
    assert positions(found) == around
    assert {(case.metadata["root"], case.metadata["source"]) for case in found} <= {
        ("one", "a.txt")
    }


def test_neighbours_of_several_are_those_of_each(store: CaseStore) -> None:
    cases = [
        chunk(store, root, source, position)
        for root, source, position in (
            ("one", "a.txt", 2),
            ("two", "b.txt", 5),
            ("one", "a.txt", 3),
        )
    ]
    assert neighbours_of(store, cases, 2) == {case.id: neighbours(store, case, 2) for case in cases}
    assert neighbours_of(store, []) == {}


def test_case_that_is_no_chunk_has_no_neighbours(store: CaseStore) -> None:
    (other,) = (case for case in store.all() if "position" not in case.metadata)
    beside = chunk(store, "two", "a.txt", 1)
    assert neighbours(store, other) == []
    assert positions(neighbours_of(store, [other, beside])[beside.id]) == [2]


def test_neighbours_of_a_store_without_them_are_none(store: CaseStore) -> None:
    with document_store() as empty:
        assert neighbours(empty, chunk(store, "one", "a.txt", 2)) == []


@pytest.mark.parametrize("reach", [-1, 1.5])
def test_reach_that_is_no_number_of_chunks_is_refused(store: CaseStore, reach: int) -> None:
    with pytest.raises(InputError, match="reach"):
        neighbours(store, chunk(store, "one", "a.txt", 2), reach)
