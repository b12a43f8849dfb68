from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from casewright.stores import Case, CaseSchema, CaseStore
from tests.stores.helpers import number_id, vector_facet
from tests.stores.naive import picks_of_all

SCHEMA = CaseSchema("plain", (vector_facet("a", 3), vector_facet("b", 2, 3.0)))
QUERY = {"a": [1, 2, 0], "b": [1, -1]}


def cosine(one: Any, other: Any) -> float:
    lengths = np.linalg.norm(one) * np.linalg.norm(other)
    return float(np.dot(one, other) / lengths) if lengths else 0.0


#: Near where the sixth decimal is rounded up or down: single precision rounds some of the cases
#: that score so up, and some down.
EDGES = (0.90166552, 0.30552948, 0.22403548, 0.46365749, 0.38092651, 0.55129753)


def on_an_edge() -> list[tuple[float, dict[str, Any]]]:
    """Score and problem of the cases that have one of these scores, or its negative."""
    found = []
    for a in itertools.product(range(-3, 4), repeat=3):
        for b in itertools.product(range(-3, 4), repeat=2):
            score = 0.25 * cosine(a, QUERY["a"]) + 0.75 * cosine(b, QUERY["b"])
            if round(abs(score), 8) in EDGES:
                found.append((round(score, 8), {"a": list(a), "b": list(b)}))
    return found


def test_hits_of_equal_score_are_ordered_by_id_on_every_engine(place: str) -> None:
    cases = on_an_edge()
    with CaseStore(SCHEMA, place) as store:
        store.add(Case(problem, id=number_id(i)) for i, (_, problem) in enumerate(cases))
        hits = store.search(QUERY, 200)
        expected = sorted(range(len(cases)), key=lambda i: (-cases[i][0], i))
        assert [hit.case.id for hit in hits] == [number_id(i) for i in expected]
        for k in (1, 7, 50):
            assert [hit.case.id for hit in store.search(QUERY, k)] == [h.case.id for h in hits[:k]]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_picks_of_equal_value_are_ordered_by_id_on_every_engine(place: str, share: float) -> None:
    with CaseStore(SCHEMA, place) as store:
        problems = [QUERY, *(problem for _, problem in on_an_edge())]
        store.add(Case(problem, id=number_id(i)) for i, problem in enumerate(problems))
        told = store.select(QUERY, 12, lambda_d=share, candidates=1)
        assert told.certified
        everything = store.search(QUERY, 200)
        assert [hit.case.id for hit in told.hits] == picks_of_all(everything, SCHEMA, 12, share)
