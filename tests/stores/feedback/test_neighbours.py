"""The chunks around what was found, of documents that were ingested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from casewright.stores import CaseStore, Found, ingest
from casewright.stores.feedback import Candidate, Feedback, NeighbourStrategy, case_text
from tests.stores.document_files import document_store, paragraph, write
from tests.stores.helpers import note, note_schema

NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CaseStore]:
    """Two files of six chunks each, a paragraph a chunk."""
    files: dict[str, str | bytes] = {
        name: "\n\n".join(f"{paragraph(tree)} {name}" for tree in NAMES)
        for name in ("one.txt", "two.txt")
    }
    with document_store() as opened:
        ingest(opened, write(tmp_path_factory.mktemp("docs"), files), progress=False)
        assert len(opened.all()) == 12
        yield opened


def neighbours_found(
    store: CaseStore, *places: tuple[str, int], k: int = 99, where: Any = None, **more: Any
) -> list[Found]:
    """What is found after the chunks at some places were called relevant."""
    question = store.question("elm", where=where)
    assert question is not None
    chosen = [
        case.id for name, at in places for case in store.all({"source": name, "position": at})
    ]
    known = [Candidate(hit, case_text(hit.case), 0.5, 1) for hit in question.hits(chosen)]
    strategy = NeighbourStrategy(then=Nothing(), **more)
    return strategy.search(question, Feedback(known), k)


class Nothing:
    """A strategy that finds nothing."""

    name = "nothing"

    def search(self, question: Any, feedback: Any, k: int) -> list[Found]:
        return []


def places_of(found: list[Found]) -> list[tuple[str, int]]:
    known = [one.hit.case.metadata for one in found]
    return sorted((one["source"], one["position"]) for one in known)


def test_neighbour_strategy_fetches_the_chunks_before_and_after(store: CaseStore) -> None:
    assert places_of(neighbours_found(store, ("one.txt", 3))) == [("one.txt", 2), ("one.txt", 4)]
    assert places_of(neighbours_found(store, ("one.txt", 1))) == [("one.txt", 2)]
    assert places_of(neighbours_found(store, ("one.txt", 6))) == [("one.txt", 5)]
    reached = places_of(neighbours_found(store, ("two.txt", 2), reach=3))
    assert reached == [("two.txt", at) for at in (1, 3, 4, 5)]


def test_neighbour_strategy_fetches_neighbours_from_the_same_file_only(store: CaseStore) -> None:
    assert places_of(neighbours_found(store, ("one.txt", 1), ("two.txt", 6))) == [
        ("one.txt", 2),
        ("two.txt", 5),
    ]


def test_neighbour_strategy_does_not_fetch_seen_chunks_again(store: CaseStore) -> None:
    assert places_of(neighbours_found(store, ("one.txt", 3), ("one.txt", 4))) == [
        ("one.txt", 2),
        ("one.txt", 5),
    ]


def test_neighbour_strategy_applies_the_where_condition_of_the_question(store: CaseStore) -> None:
    both = (("one.txt", 3), ("two.txt", 3))
    where = {"source": "two.txt", "position": {"gte": 3}}
    assert places_of(neighbours_found(store, *both, where=where)) == [("two.txt", 4)]


def test_neighbour_strategy_fetches_best_k_and_fills_up_by_another_strategy(
    store: CaseStore,
) -> None:
    every = neighbours_found(store, ("one.txt", 3), ("two.txt", 3))
    scores = [one.hit.score for one in every]
    assert scores == sorted(scores, reverse=True)
    best = neighbours_found(store, ("one.txt", 3), ("two.txt", 3), k=2)
    assert [one.hit.case.id for one in best] == [one.hit.case.id for one in every[:2]]
    question = store.question("elm")
    assert question is not None
    (chosen,) = question.hits([case.id for case in store.all({"source": "one.txt", "position": 3})])
    given = Feedback([Candidate(chosen, case_text(chosen.case), 0.5, 1)])
    filled = NeighbourStrategy().search(question, given, 5)
    assert places_of(filled[:2]) == [("one.txt", 2), ("one.txt", 4)]
    assert len({one.hit.case.id for one in filled} - given.seen) == 5


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"root": "r", "source": "s"},
        {"root": ["r"], "source": {"a": 1}, "position": 1},
        {"root": "r", "source": "s", "position": "1"},
        {"root": "r", "source": "s", "position": -7},
    ],
    ids=["none", "some", "unhashable", "text", "negative"],
)
def test_cases_without_chunk_metadata_have_no_neighbours(metadata: dict[str, Any]) -> None:
    with CaseStore(note_schema("plain")) as plain:
        plain.add([note("elm", metadata=metadata), note("birch", metadata=metadata)])
        question = plain.question("elm")
        assert question is not None
        hits = [one.hit for one in question.best(1)]
        given = Feedback([Candidate(hits[0], "elm", 0.5, 1)])
        assert NeighbourStrategy(then=Nothing()).search(question, given, 5) == []
        assert len(NeighbourStrategy().search(question, given, 5)) == 1
