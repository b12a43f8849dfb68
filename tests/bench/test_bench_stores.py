from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright.bench.stores.data import (
    FACETS,
    WEIGHT_SETS,
    exact_scores,
    is_same_order,
    query_of,
    recall,
    weights_of,
    write_vectors,
)
from casewright.bench.stores.measure import measure_stores
from casewright.bench.stores.systems import (
    Casewright,
    Cbrkit,
    NamedVectors,
    System,
    check_cbrkit,
)
from casewright.bench.stores.worker import Worker, build_system, search_names
from casewright.errors import DependencyError, InputError, StoreError
from casewright.serve.cli.bench.options import read_numbers
from tests.serve.helpers import Output, one_line_error, result, run

SIZE, QUERIES = 120, 8
EXACT = ("casewright", "merged_all", "formula_all", "cbrkit", "cbrkit_documented")


def test_recall_is_the_share_of_the_best_cases_among_the_first_k() -> None:
    scores = np.array([0.9, 0.1, 0.8, 0.7, 0.2])
    assert recall([0, 2, 3], scores, 3) == 1
    assert recall([3, 0, 2], scores, 3) == 1
    assert recall([0, 1, 3], scores, 3) == pytest.approx(2 / 3)
    assert recall([0], scores, 3) == pytest.approx(1 / 3)
    assert recall([], scores, 3) == 0


def test_recall_counts_repeated_cases_once_and_ignores_cases_after_k() -> None:
    scores = np.array([0.9, 0.1, 0.8, 0.7, 0.2])
    assert recall([0, 0, 0], scores, 3) == pytest.approx(1 / 3)
    assert recall([0, 1, 4, 2, 3], scores, 3) == pytest.approx(1 / 3)


def test_same_order_follows_the_scores_and_allows_swaps_of_equal_scores() -> None:
    scores = np.array([0.9, 0.1, 0.8, 0.7, 0.8 + 1e-9])
    assert is_same_order([0, 2, 4], scores, 3)
    assert is_same_order([0, 4, 2], scores, 3)
    assert not is_same_order([2, 0, 4], scores, 3)
    assert not is_same_order([0, 2, 3], scores, 3)
    assert not is_same_order([0, 2], scores, 3)
    assert not is_same_order([0, 2, 2], scores, 3)


@given(st.lists(st.integers(0, 1000), min_size=5, max_size=40), st.integers(1, 5))
def test_best_cases_in_order_have_recall_1(thousandths: list[int], k: int) -> None:
    scores = np.array(thousandths) / 1000
    best = [int(i) for i in np.argsort(-scores, kind="stable")]
    assert recall(best[:k], scores, k) == 1
    assert is_same_order(best[:k], scores, k)
    below = [i for i in best if scores[i] < scores[best[k - 1]]]
    assert recall(best[: k - 1] + below[:1], scores, k) == pytest.approx((k - 1) / k)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return the vectors of cases and queries, as the bench draws them."""
    folder = tmp_path_factory.mktemp("vectors")
    write_vectors(folder / "cases.npy", SIZE, seed=3, stream=0)
    write_vectors(folder / "queries.npy", QUERIES, seed=3, stream=1)
    return np.load(folder / "cases.npy"), np.load(folder / "queries.npy")


def test_exact_scores_are_weighted_sums_of_cosines(vectors: tuple[Any, Any]) -> None:
    cases, queries = vectors
    scores = exact_scores(cases, queries)
    assert scores.shape == (QUERIES, SIZE)
    for query in range(QUERIES):
        weights = WEIGHT_SETS[query % len(WEIGHT_SETS)]
        for case in (0, 17, SIZE - 1):
            cosines = [
                np.dot(q, c) / np.linalg.norm(q) / np.linalg.norm(c)
                for q, c in zip(queries[:, query], cases[:, case], strict=True)
            ]
            assert scores[query, case] == pytest.approx(np.dot(weights, cosines), abs=1e-6)


def test_drawn_cases_are_equal_for_the_same_seed_and_differ_from_queries(
    vectors: tuple[Any, Any], tmp_path: Path
) -> None:
    cases, queries = vectors
    write_vectors(tmp_path / "again.npy", SIZE, seed=3, stream=0)
    assert np.array_equal(np.load(tmp_path / "again.npy"), cases)
    assert cases.shape[0] == len(FACETS)
    assert np.allclose(np.linalg.norm(cases, axis=2), 1, atol=1e-5)
    assert all((queries[f] @ cases[f].T).max() < 0.999 for f in range(len(FACETS)))


@pytest.mark.parametrize("kind", ["casewright", "named_vectors", "cbrkit"])
def test_exact_searches_return_the_order_of_exact_scores(
    vectors: tuple[Any, Any], tmp_path: Path, kind: str
) -> None:
    systems: dict[str, System] = {
        "casewright": Casewright(tmp_path / "store"),
        "named_vectors": NamedVectors(tmp_path / "store"),
        "cbrkit": Cbrkit(),
    }
    system = systems[kind]
    cases, queries = vectors
    scores = exact_scores(cases, queries)
    system.build(cases)
    system.close()
    system.open()
    exact = {name: search for name, search in system.searches().items() if name in EXACT}
    assert exact
    for name, search in exact.items():
        for query in range(QUERIES):
            answer = search(query_of(queries, query), weights_of(query))
            hits = list(system.case_numbers(answer))
            assert hits == np.argsort(-scores[query])[:10].tolist(), name
    system.close()


def test_searches_with_50_candidates_miss_cases_that_100_candidates_find(tmp_path: Path) -> None:
    # The best ten by the sum come after 60 other cases in each facet alone.
    ranked = np.full((3, 200), -0.9)
    for facet in range(3):
        ranked[facet, facet * 60 : facet * 60 + 60] = 0.5
        ranked[facet, 190:] = 0.45
    cases = np.zeros((3, 200, 384), dtype=np.float32)
    cases[:, :, 0], cases[:, :, 1] = ranked, np.sqrt(1 - ranked**2)
    query = np.zeros((3, 384), dtype=np.float32)
    query[:, 0] = 1
    system = NamedVectors(tmp_path / "store")
    system.build(cases)
    system.close()
    system.open()
    query_vectors = dict(zip(FACETS, query, strict=True))
    weights = dict.fromkeys(FACETS, 1 / 3)
    hits = {
        name: set(system.case_numbers(search(query_vectors, weights)))
        for name, search in system.searches().items()
    }
    system.close()
    best = set(range(190, 200))
    assert hits["merged_all"] == hits["formula_all"] == hits["formula_100"] == best
    for name in ("merged_50", "merged_50_rescored", "formula_50"):
        assert len(hits[name]) == 10
        assert not hits[name] & best


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plots") / "stores.png"


@pytest.fixture(scope="module")
def completed(picture: Path) -> Output:
    home = picture.parent
    small = ("--sizes", "150", "--queries", "8")
    return run(home, "bench", "stores", *small, "--json", "--plot", picture)


def test_stores_bench_prints_every_figure_and_exact_searches_have_recall_1(
    completed: Output, picture: Path
) -> None:
    report = result(completed)
    figures = report["figures"]
    merged = {"merged_all", "merged_50", "merged_50_rescored"}
    qdrant = {*merged, "formula_50", "formula_100", "formula_all"}
    searches = {"casewright", *qdrant, "cbrkit", "cbrkit_documented"}
    assert {row["search"] for row in report["rows"]} == searches
    for name in searches:
        assert figures[f"search_ms_p50_{name}_150"] > 0
        exact = name in EXACT
        measured_recall = figures[f"recall_at_10_{name}_150"]
        assert measured_recall == 1 if exact else measured_recall > 0, name
    for name in ("casewright", "named_vectors"):
        for measure in ("build_s", "open_s", "memory_mb", "build_memory_mb", "disk_mb"):
            assert figures[f"{measure}_{name}_150"] > 0
    assert figures["build_s_cbrkit_150"] > 0
    for other in ("merged", "formula", "cbrkit", "cbrkit_documented"):
        name = {"merged": "merged_all", "formula": "formula_all"}.get(other, other)
        ratio = figures[f"search_ms_p50_{name}_150"] / figures["search_ms_p50_casewright_150"]
        assert figures[f"ratio_{other}_over_casewright_150"] == pytest.approx(ratio)
    assert all(row["order"] == 1 for row in report["rows"] if row["search"] in EXACT)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_stores_bench_writes_its_progress_to_stderr(completed: Output) -> None:
    assert "150 cases: drawing vectors" in completed.stderr
    assert "building casewright" in completed.stderr


@pytest.mark.parametrize("text", ["", "ten", "1e4", "1000,", "50", "-1000", "1000,1000"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--sizes"):
        measure_stores(read_numbers("--sizes", text), QUERIES)


def test_stores_command_reports_invalid_sizes_in_one_line(tmp_path: Path) -> None:
    assert "--sizes" in one_line_error(run(tmp_path, "bench", "stores", "--sizes", "many"))


def test_too_few_queries_for_the_weight_sets_are_refused() -> None:
    with pytest.raises(InputError, match="weight sets"):
        measure_stores([200], len(WEIGHT_SETS) - 1)


def test_missing_cbrkit_is_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cbrkit", None)
    with pytest.raises(DependencyError, match=r"pip install 'casewright\[bench\]'"):
        check_cbrkit()


def test_unsupported_cbrkit_version_is_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("casewright.bench.stores.systems.version", lambda package: "1.7.1")
    with pytest.raises(DependencyError, match=r"1\.7\.1.*pip install 'cbrkit>=0\.14,<0\.15'"):
        check_cbrkit()


def test_killed_worker_process_is_an_error_that_names_its_system(tmp_path: Path) -> None:
    with Worker("cbrkit", tmp_path) as worker:
        assert worker.call(search_names)
        for process in multiprocessing.active_children():
            process.kill()
        with pytest.raises(StoreError, match="cbrkit"):
            worker.call(build_system)
