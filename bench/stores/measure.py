"""The speed, size and exactness of the case store, Qdrant's named vectors and cbrkit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean, p50, p95
from casewright.bench.report import Report
from casewright.bench.stores import data, worker
from casewright.bench.stores.systems import check_cbrkit
from casewright.errors import InputError
from casewright.stores.progress import note

#: The minimum number of cases.
MIN_CASES = 100
#: The exact searches of other systems, by their names in the ratios to Casewright.
SEARCH_BY_RATIO = {"merged": "merged_all", "formula": "formula_all"}
SEARCH_BY_RATIO |= {name: name for name in ("cbrkit", "cbrkit_documented")}
_COLOURS = {"casewright": "C0", "merged": "C1", "formula": "C2", "cbrkit": "C3"}
_MARKERS = {"merged_50_rescored": "s", "formula_100": "s", "cbrkit_documented": "s"}
NOTES = (
    "The vectors are drawn from a seeded mixture of Gaussians, because embedding 100,000 texts "
    "would take longer than the benchmark. No figure includes an encoder's time.",
    f"Each system runs in its own process. They take turns of {worker.TURN_QUERY_COUNT} queries, "
    f"after up to {worker.WARM_UP_SECONDS:g} s of searches to warm up. A search is a user's whole "
    "call, with ten cases in its answer. NumPy computes with one thread.",
    "merged: Qdrant's engine, as in the case store, searches for each vector, with all cases or 50 "
    "as candidates; NumPy sums the weighted scores. If one of these searches does not find a case, "
    "its score there counts as 0; rescored: this score is computed. formula: Qdrant's formula over "
    "prefetched candidates. cbrkit: attribute_value with a similarity function over all cases and "
    "a custom aggregator, the fastest known form of cbrkit; documented: a function of a pair, and "
    "cbrkit's aggregator.",
    "one_facet_ms: median time of the queries that weight only one facet. Named vectors then need "
    "one search with a third of the dimensions; the case store searches with its whole vector.",
    "recall: share of the ten best cases (by 64-bit arithmetic) that are found. order: share of "
    "queries with these ten in the right order. Ratios are ratios of medians over the queries that "
    "both systems answered.",
    "memory_mb: resident memory after the searches. It includes pages mapped from files, and the "
    "kernel can drop these pages. cbrkit writes nothing to disk.",
)


def measure_stores(sizes: Sequence[int], query_count: int, seed: int = 0) -> Report:
    """Compare all systems, with each of ``sizes`` as the number of cases."""
    if not sizes or min(sizes) < MIN_CASES or len(set(sizes)) < len(sizes):
        raise InputError(
            f"The --sizes {list(sizes)} cannot be measured. Give different numbers of at least "
            f"{MIN_CASES}."
        )
    if query_count < len(data.WEIGHT_SETS):
        raise InputError(
            f"{query_count} queries do not use all {len(data.WEIGHT_SETS)} weight sets. Give more."
        )
    check_cbrkit()
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for size in sizes:
        note(f"{size} cases: drawing vectors")
        with tempfile.TemporaryDirectory(prefix="casewright-bench-") as folder_name:
            folder = Path(folder_name)
            case_file, query_file = folder / worker.CASES_FILE, folder / worker.QUERIES_FILE
            data.write_vectors(case_file, size, seed, stream=0)
            data.write_vectors(query_file, query_count, seed, stream=1)
            scores = data.exact_scores(np.load(case_file, "r"), np.load(query_file))
            all_results = worker.measure_systems(folder, query_count)
        size_rows = [row for results in all_results for row in _rows(size, results, scores)]
        rows += size_rows
        figures |= _figures(size, all_results, size_rows)
    settings = {
        "sizes": list(sizes),
        "queries": query_count,
        "k": data.K,
        "dimension": data.DIMENSION,
        "weights": [[round(weight, 3) for weight in weights] for weights in data.WEIGHT_SETS],
        "topics": data.TOPIC_COUNT,
        "spread": data.SPREAD,
        "seed": seed,
        "packages": {name: version(name) for name in ("qdrant-edge-py", "cbrkit")},
    }
    return Report("stores", settings, figures, rows, NOTES, partial(_draw, rows=rows))


def _rows(
    size: int, results: worker.SystemResults, scores: NDArray[np.float64]
) -> list[dict[str, Any]]:
    costs = results.costs
    return [
        {
            "cases": size,
            "search": name,
            "ms_p50": p50([t.milliseconds for t in searches]),
            "ms_p95": p95([t.milliseconds for t in searches]),
            "recall": mean([data.recall(t.numbers, scores[t.query]) for t in searches]),
            "order": mean([data.is_same_order(t.numbers, scores[t.query]) for t in searches]),
            "build_s": costs.build_s,
            "open_s": costs.open_s,
            "memory_mb": costs.memory_mb and round(costs.memory_mb),
            "disk_mb": costs.disk_mb and round(costs.disk_mb),
            "one_facet_ms": p50(
                [t.milliseconds for t in searches if 1 in data.weights_of(t.query).values()]
            ),
            "queries": len(searches),
        }
        for name, searches in results.timed_searches.items()
    ]


def _figures(
    size: int, all_results: Sequence[worker.SystemResults], rows: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    figures: dict[str, float] = {}
    for row in rows:
        figures[f"search_ms_p50_{row['search']}_{size}"] = row["ms_p50"]
        figures[f"recall_at_10_{row['search']}_{size}"] = row["recall"]
    times: dict[str, list[float]] = {}
    for results in all_results:
        for name, value in results.costs._asdict().items():
            if value is not None:
                figures[f"{name}_{results.system}_{size}"] = value
        for name, searches in results.timed_searches.items():
            times[name] = [t.milliseconds for t in searches]
    casewright_ms = times["casewright"]
    for ratio_name, name in SEARCH_BY_RATIO.items():
        # A slow system may have answered fewer queries.
        count = min(len(casewright_ms), len(times[name]))
        ratio = p50(times[name][:count]) / p50(casewright_ms[:count])
        figures[f"ratio_{ratio_name}_over_casewright_{size}"] = ratio
    return figures


def _draw(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    for name in dict.fromkeys(row["search"] for row in rows):
        subset = [row for row in rows if row["search"] == name]
        is_exact = all(row["recall"] == 1 for row in subset)
        style = {"color": _COLOURS[name.split("_")[0]], "marker": _MARKERS.get(name, "o")}
        style |= {"linestyle": "-" if is_exact else "--", "label": name}
        points = zip(*((row["cases"], row["ms_p50"]) for row in subset), strict=True)
        axes.plot(*points, linewidth=2.5 if name == "casewright" else 1.2, **style)
    axes.set(xscale="log", yscale="log", xlabel="cases", ylabel="ms per search, median")
    axes.set_title("Ten cases by three weighted facets (dashed: not exact)")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.grid(alpha=0.3)
