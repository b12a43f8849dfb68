"""The time of selections by maximal marginal relevance, and the share that are proven exact."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import grouped_bars, load_domain, mean, p50, p95, timed, tracked
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Encoder, Facet, Hit, select, text_facet
from casewright.stores.hit import DECIMALS

Floats = NDArray[np.float64]
SYSTEMS = ("casewright", "naive", "langchain")
#: Values of λ_d, the weight of a case's score; its redundancy has the weight 1 − λ_d.
LAMBDAS = (0.5, 0.75, 0.95)
#: Of the synthetic vectors: dimension, number of clusters, and deviation within a cluster.
DIMENSION, CLUSTER_COUNT, DEVIATION = 384, 100, 1.0
#: For a domain's query: number of picks, and number of candidates at first.
K, CANDIDATE_COUNT = 8, 20
NOTES = (
    "Median milliseconds in one process to select from the same hits. Naive: RAGSys's Algorithm 1 "
    "as published; it computes all similarities at every pick, in NumPy. LangChain: "
    "maximal_marginal_relevance, whose relevance is a cosine without quality.",
    f"For each test query, {K} of the domain's annotated queries are picked twice: once from "
    f"{CANDIDATE_COUNT} candidates, once from as many as a proof needs. Certified: the picks are "
    "proven exact. Exact: they are those of the naive algorithm from all cases.",
)


def measure_selection(
    domain_name: str, sizes: Sequence[tuple[int, int]], limit: int | None, repeats: int, seed: int
) -> Report:
    """Time picks from synthetic vectors by size (candidates, picks), and from known queries."""
    tested = load_domain(domain_name)
    questions = [query.query for query in tested.held_out_queries()[:limit]]
    rows, figures = [], {}
    for (count, k), lambda_d in tracked("Timing selections", list(product(sizes, LAMBDAS))):
        row = _timing_row(count, k, lambda_d, repeats, seed)
        rows.append(row)
        name = f"{count}_to_{k}_lambda_{lambda_d}"
        for system in SYSTEMS:
            figures[f"selection_{system}_ms_{name}"] = row[f"{system}_ms"]
        figures[f"ratio_langchain_over_casewright_{name}"] = row["langchain_over"]
        figures[f"same_picks_as_naive_{name}"] = float(row["same_as_naive"])
    known_queries = [query.query for query in tested.domain.queries()[:limit]]
    figures |= _certified(tested.encoder, known_queries, questions)
    certified_settings = {"domain": domain_name, "queries": limit}
    certified_settings |= {"picks": K, "first_candidates": CANDIDATE_COUNT}
    settings = {"sizes": [list(size) for size in sizes], "dimension": DIMENSION}
    settings |= {"repeats": repeats, "seed": seed, "certified": certified_settings}
    return Report("selection", settings, figures, rows, NOTES, partial(_draw, rows=rows))


def read_sizes(text: str) -> list[tuple[int, int]]:
    """Return pairs (candidates, picks) from ``1000:50,9:3``; ``InputError`` for other texts."""
    try:
        pairs = [tuple(map(int, part.split(":"))) for part in text.split(",")]
        sizes = [(count, k) for count, k in pairs]
    except ValueError:
        sizes = []
    if not sizes or any(not 1 <= k <= count for count, k in sizes):
        raise InputError(
            f"--sizes {text!r} cannot be read. Give candidates and picks: 1000:50,10000:100."
        )
    return sizes


def naive(
    vectors: Floats, scores: Floats, ids: Sequence[str], k: int, lambda_d: float
) -> list[int]:
    """Return the rows that RAGSys's Algorithm 1 picks; every pick computes all similarities."""
    # The rank by score and id decides between equal values.
    order = np.lexsort((np.array(ids), -scores.round(DECIMALS)))
    rank = np.argsort(order)
    picked: list[int] = []
    while len(picked) < min(k, len(ids)):
        redundancy = (vectors @ vectors[picked].T).max(axis=1) if picked else np.zeros(len(ids))
        values = np.round(lambda_d * scores - (1 - lambda_d) * redundancy, DECIMALS)
        values[picked] = -np.inf
        best = np.flatnonzero(values == values.max())
        picked.append(int(best[np.argmin(rank[best])]))
    return picked


def _timing_row(count: int, k: int, lambda_d: float, repeats: int, seed: int) -> dict[str, Any]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance as langchain_select

    query, vectors = _clustered_vectors(count, seed)
    schema, hits = _search_hits(query, vectors)
    scores = np.array([hit.score for hit in hits])
    ids = [hit.case.id for hit in hits]
    # LangChain's function is faster with arrays than with the lists of its signature.
    candidates: Any = [np.asarray(hit.vector, dtype=np.float64) for hit in hits]
    casewright_call = partial(select, hits, k, schema, lambda_d=lambda_d)
    naive_call = partial(naive, np.array(candidates), scores, ids, k, lambda_d)
    langchain_call = partial(langchain_select, query, candidates, lambda_mult=lambda_d, k=k)
    # The slower a system, the fewer repeats.
    casewright_ms, picks = _median_ms(casewright_call, repeats)
    naive_ms, naive_rows = _median_ms(naive_call, max(1, repeats // 3))
    langchain_ms, langchain_rows = _median_ms(langchain_call, 1)
    picked = [pick.hit.case.id for pick in picks]
    return {
        "candidates": count,
        "picks": k,
        "lambda_d": lambda_d,
        "casewright_ms": casewright_ms,
        "naive_ms": naive_ms,
        "langchain_ms": langchain_ms,
        "naive_over": naive_ms / casewright_ms,
        "langchain_over": langchain_ms / casewright_ms,
        "same_as_naive": picked == [ids[row] for row in naive_rows],
        "shared_with_langchain": mean([ids[row] in picked for row in langchain_rows]),
    }


def _clustered_vectors(count: int, seed: int) -> tuple[Floats, Floats]:
    """Return a unit query vector, and unit vectors that form clusters like embeddings of texts."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLUSTER_COUNT, DIMENSION))
    vectors = centres[rng.integers(CLUSTER_COUNT, size=count)]
    vectors = vectors + DEVIATION * rng.normal(size=(count, DIMENSION))
    # The query belongs to two clusters.
    query = centres[0] + 0.5 * centres[1] + DEVIATION * rng.normal(size=DIMENSION)
    return query / np.linalg.norm(query), vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _search_hits(query: Floats, vectors: Floats) -> tuple[CaseSchema, list[Hit]]:
    """Return the schema of cases with these vectors, and the cases as hits, best first."""
    rows = vectors.astype(np.float32)
    scores = [float(score) for score in rows.astype(np.float64) @ query]
    hits = [
        Hit(Case({}, id=f"{n:08d}"), scores[row], scores[row], {"text": scores[row]}, rows[row])
        for n, row in enumerate(np.argsort(-np.array(scores), kind="stable"))
    ]
    embed: Any = None  # never called, since the vectors are given
    facet = Facet("text", ("text",), DIMENSION, embed, embed, str)
    return CaseSchema("given", (facet,)), hits


def _median_ms(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median milliseconds of ``repeats`` calls, and the result of the last one."""
    results, times = zip(*(timed(call) for _ in range(repeats)), strict=True)
    return p50(times), results[-1]


def _certified(encoder: Encoder, known: Sequence[str], queries: Sequence[str]) -> dict[str, float]:
    """Return figures for each lambda_d: shares of certified and of exact selections, and times."""
    schema = CaseSchema("queries", (text_facet("query", encoder, inter=False),))
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, CaseStore(schema, folder) as store:
        store.add(Case({"query": query}) for query in known)
        hits = store.search(queries[0], store.count())  # any query finds all cases
        vectors = np.array([hit.vector for hit in hits], dtype=np.float64)
        ids = [hit.case.id for hit in hits]
        query_vectors = schema.vectors([schema.query(text) for text in queries], query=True)
        for lambda_d in LAMBDAS:
            rows = []
            pairs = list(zip(queries, query_vectors, strict=True))
            for question, vector in tracked(f"Certifying, λ_d {lambda_d}", pairs):
                exact = [ids[row] for row in naive(vectors, vectors @ vector, ids, K, lambda_d)]
                select_certified = partial(
                    store.select, question, K, lambda_d=lambda_d, candidates=CANDIDATE_COUNT
                )
                for call in (partial(select_certified, most=CANDIDATE_COUNT), select_certified):
                    selected, ms = timed(call)
                    is_exact = [hit.case.id for hit in selected.hits] == exact
                    rows.append((selected.certified, is_exact, selected.candidates, ms))
            # Even rows are of the first call (with ``most``), odd rows of the second.
            table = np.array(rows, dtype=np.float64)
            first_certified, first_exact, _, first_ms = table[::2].T
            certified, is_exact, candidates, certified_ms = table[1::2].T
            values = {
                f"certified_from_{CANDIDATE_COUNT}_candidates": mean(first_certified),
                f"exact_from_{CANDIDATE_COUNT}_candidates": mean(first_exact),
                "certified": mean(certified),
                "exact_where_certified": mean(is_exact[certified == 1]),
                "candidates_p50": p50(candidates),
                "candidates_p95": p95(candidates),
                f"ms_p50_from_{CANDIDATE_COUNT}_candidates": p50(first_ms),
                "ms_p50_certified": p50(certified_ms),
            }
            figures |= {f"{name}_lambda_{lambda_d}": value for name, value in values.items()}
    return figures


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    names = [f"{row['candidates']}→{row['picks']}\nλ_d {row['lambda_d']}" for row in rows]
    grouped_bars(axes, names, {s: [row[f"{s}_ms"] for row in rows] for s in SYSTEMS})
    axes.set(yscale="log", ylabel="milliseconds", title="Selection by maximal marginal relevance")
