"""NeighbourStrategy: the chunks before and after the relevant chunks of documents."""

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
    """Yield a store of two files with six chunks each, one per paragraph."""
    files: dict[str, str | bytes] = {
        name: "\n\n".join(f"{paragraph(tree)} {name}" for tree in NAMES)
        for name in ("one.txt", "two.txt")
    }
    with document_store() as case_store:
        ingest(case_store, write(tmp_path_factory.mktemp("docs"), files), progress=False)
        assert len(case_store.all()) == 12
        yield case_store


def find_neighbours(
    store: CaseStore, *positions: tuple[str, int], k: int = 99, where: Any = None, **settings: Any
) -> list[Found]:
    """Return the results of the strategy if the chunks at these positions are relevant."""
    question = store.question("elm", where=where)
    assert question is not None
    chunks = [{"source": source, "position": position} for source, position in positions]
    ids = [case.id for chunk in chunks for case in store.all(chunk)]
    candidates = [Candidate(hit, case_text(hit.case), 0.5, 1) for hit in question.hits(ids)]
    strategy = NeighbourStrategy(then=EmptyStrategy(), **settings)
    return strategy.search(question, Feedback(candidates), k)


class EmptyStrategy:
    """A strategy that finds nothing."""

    name = "nothing"

    def search(self, question: Any, feedback: Any, k: int) -> list[Found]:
        return []


def positions_of(results: list[Found]) -> list[tuple[str, int]]:
    chunks = [result.hit.case.metadata for result in results]
    return sorted((chunk["source"], chunk["position"]) for chunk in chunks)


def test_neighbour_strategy_fetches_the_chunks_before_and_after(store: CaseStore) -> None:
    assert positions_of(find_neighbours(store, ("one.txt", 3))) == [("one.txt", 2), ("one.txt", 4)]
    assert positions_of(find_neighbours(store, ("one.txt", 1))) == [("one.txt", 2)]
    assert positions_of(find_neighbours(store, ("one.txt", 6))) == [("one.txt", 5)]
    positions = positions_of(find_neighbours(store, ("two.txt", 2), reach=3))
    assert positions == [("two.txt", position) for position in (1, 3, 4, 5)]


def test_neighbour_strategy_fetches_neighbours_from_the_same_file_only(store: CaseStore) -> None:
    assert positions_of(find_neighbours(store, ("one.txt", 1), ("two.txt", 6))) == [
        ("one.txt", 2),
        ("two.txt", 5),
    ]


def test_neighbour_strategy_does_not_fetch_seen_chunks_again(store: CaseStore) -> None:
    assert positions_of(find_neighbours(store, ("one.txt", 3), ("one.txt", 4))) == [
        ("one.txt", 2),
        ("one.txt", 5),
    ]


def test_neighbour_strategy_applies_the_where_condition_of_the_question(store: CaseStore) -> None:
    positions = (("one.txt", 3), ("two.txt", 3))
    where = {"source": "two.txt", "position": {"gte": 3}}
    assert positions_of(find_neighbours(store, *positions, where=where)) == [("two.txt", 4)]


def test_neighbour_strategy_fetches_the_best_k_and_fills_up_by_another_strategy(
    store: CaseStore,
) -> None:
    all_results = find_neighbours(store, ("one.txt", 3), ("two.txt", 3))
    scores = [result.hit.score for result in all_results]
    assert scores == sorted(scores, reverse=True)
    best_results = find_neighbours(store, ("one.txt", 3), ("two.txt", 3), k=2)
    ids = [result.hit.case.id for result in all_results]
    assert [result.hit.case.id for result in best_results] == ids[:2]
    question = store.question("elm")
    assert question is not None
    (hit,) = question.hits([case.id for case in store.all({"source": "one.txt", "position": 3})])
    feedback = Feedback([Candidate(hit, case_text(hit.case), 0.5, 1)])
    results = NeighbourStrategy().search(question, feedback, 5)
    assert positions_of(results[:2]) == [("one.txt", 2), ("one.txt", 4)]
    assert len({result.hit.case.id for result in results} - feedback.seen) == 5


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
    with CaseStore(note_schema("plain")) as store:
        store.add([note("elm", metadata=metadata), note("birch", metadata=metadata)])
        question = store.question("elm")
        assert question is not None
        hits = [result.hit for result in question.best(1)]
        feedback = Feedback([Candidate(hits[0], "elm", 0.5, 1)])
        assert NeighbourStrategy(then=EmptyStrategy()).search(question, feedback, 5) == []
        assert len(NeighbourStrategy().search(question, feedback, 5)) == 1
