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


def cosine(left: Any, right: Any) -> float:
    lengths = np.linalg.norm(left) * np.linalg.norm(right)
    return float(np.dot(left, right) / lengths) if lengths else 0.0


#: Scores at which the rounding to six decimals changes: in single precision, some cases with such
#: a score are rounded up, and others down.
EDGES = (0.90166552, 0.30552948, 0.22403548, 0.46365749, 0.38092651, 0.55129753)


def problems_with_edge_scores() -> list[tuple[float, dict[str, Any]]]:
    """Return score and problem of all cases with a score, or a negative score, of ``EDGES``."""
    scored_problems = []
    for a in itertools.product(range(-3, 4), repeat=3):
        for b in itertools.product(range(-3, 4), repeat=2):
            score = 0.25 * cosine(a, QUERY["a"]) + 0.75 * cosine(b, QUERY["b"])
            if round(abs(score), 8) in EDGES:
                scored_problems.append((round(score, 8), {"a": list(a), "b": list(b)}))
    return scored_problems


def test_hits_of_equal_score_are_ordered_by_id_on_every_engine(location: str) -> None:
    cases = problems_with_edge_scores()
    with CaseStore(SCHEMA, location) as store:
        store.add(Case(problem, id=number_id(i)) for i, (_, problem) in enumerate(cases))
        hits = store.search(QUERY, 200)
        expected = sorted(range(len(cases)), key=lambda i: (-cases[i][0], i))
        assert [hit.case.id for hit in hits] == [number_id(i) for i in expected]
        for k in (1, 7, 50):
            assert [hit.case.id for hit in store.search(QUERY, k)] == [h.case.id for h in hits[:k]]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_picks_of_equal_value_have_id_order_on_every_engine(location: str, share: float) -> None:
    with CaseStore(SCHEMA, location) as store:
        problems = [QUERY, *(problem for _, problem in problems_with_edge_scores())]
        store.add(Case(problem, id=number_id(i)) for i, problem in enumerate(problems))
        selection = store.select(QUERY, 12, lambda_d=share, candidates=1)
        assert selection.certified
        expected = picks_of_all(store.search(QUERY, 200), SCHEMA, 12, share)
        assert [hit.case.id for hit in selection.hits] == expected
