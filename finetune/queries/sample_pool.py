"""Samples a pool of queries, as a sheet to annotate, and measures the sample."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY
from casewright.finetune.queries import choose
from casewright.finetune.queries.annotation import sheet_record
from casewright.finetune.queries.choose import METHODS, Floats, Method, Vectors, unit_vectors
from casewright.stores import Encoder
from casewright.stores.progress import note, progress_bar

#: Number of texts in a batch for the encoder; the progress bar moves between batches.
BATCH_SIZE = 512


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """Figures of a sample of the large pool; similarities are cosines.

    Attributes:
        queries: Number of queries in the sample.
        coverage: Mean over the large pool of each query's highest similarity to the sample.
        coverage_with_initial: The same mean for the sample together with the initial pool.
        mean_similarity: Mean similarity of all pairs in the sample; ``None`` without a pair.
        near_duplicates: Share of the sample that has a near-duplicate in the sample.
    """

    queries: int
    coverage: float
    coverage_with_initial: float
    mean_similarity: float | None
    near_duplicates: float


def pool_figures(sample: Vectors, large: Vectors, similarity_to_initial: Floats) -> PoolFigures:
    """Return the figures of a sample (n, d) of the large pool (N, d).

    ``similarity_to_initial`` (N) is the highest similarity of each query to the initial pool.
    """
    similarity_to_sample, count = choose.best_similarity(large, sample), len(sample)
    to_others = choose.best_similarity(sample, sample, skip_self=True) if count > 1 else np.zeros(1)
    unit = unit_vectors(sample)
    # The sum's squared length is the sum of all cosines: of each pair twice, and each self-cosine.
    pair_sum = float((unit.sum(axis=0) ** 2).sum() - (unit * unit).sum())
    return PoolFigures(
        queries=count,
        coverage=float(similarity_to_sample.mean()),
        coverage_with_initial=float(np.maximum(similarity_to_sample, similarity_to_initial).mean()),
        mean_similarity=pair_sum / (count * (count - 1)) if count > 1 else None,
        near_duplicates=float((to_others > NEAR_DUPLICATE_SIMILARITY).mean()),
    )


@dataclass(frozen=True, slots=True)
class SampledPool:
    """A sample of a large pool.

    Attributes:
        sheet: The sample as records to annotate.
        read_count: Number of queries in the large pool.
        distinct_count: Number of different queries that are only in the large pool.
        figures: The figures of the initial pool (``initial``) and of each method's sample, by name.
        seconds: Duration in seconds of ``embedding`` and of each method, by name.
    """

    sheet: Sequence[Mapping[str, Any]]
    method: Method
    seed: int
    read_count: int
    distinct_count: int
    figures: Mapping[str, PoolFigures]
    seconds: Mapping[str, float]

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures as rows of a table; a missing figure is ``None``."""
        return [
            {"pool": name, **asdict(figures), "seconds": self.seconds.get(name)}
            for name, figures in self.figures.items()
        ]

    def notes(self) -> list[str]:
        """Return sentences that explain the figures."""
        lines = [
            f"{self.read_count:,} queries in the pool, {self.distinct_count:,} different ones that "
            f"are not in the initial pool; embedded in {self.seconds['embedding']:.1f} s.",
            "coverage: mean over the pool of the highest similarity to the sample. "
            "near_duplicates: share of the sample's queries with a cosine above 0.9 to another.",
        ]
        if "dqs_large" in self.figures:
            lines.append(
                "dqs_large is DQS as the paper prints it: it samples the whole pool uniformly, "
                "like random, but with another draw."
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            "method": self.method,
            "seed": self.seed,
            "sampled": len(self.sheet),
            "pool_read": self.read_count,
            "pool_distinct": self.distinct_count,
            "embedding_seconds": self.seconds["embedding"],
            "rows": self.rows(),
            "notes": self.notes(),
        }


def sample_pool(
    initial: Sequence[Mapping[str, Any]],
    large: Sequence[Mapping[str, Any]],
    encoder: Encoder,
    *,
    method: str = "dqs",
    size: int | None = None,
    extremes: float = choose.EXTREME_SHARE,
    seed: int = 0,
    compare: bool = False,
) -> SampledPool:
    """Return a sample of the large pool, with figures that compare it to other samples.

    Raises ``InputError`` if there are too few queries, or no such method.

    Args:
        initial: The initial pool, of known queries: at least one record with a ``query``.
        large: The pool to sample: records with a ``query``. Texts that differ only in case and
            spaces count as one, and texts of the initial pool are omitted.
        method: One of ``METHODS``.
        size: Size of the sample; by default the number of different texts in the initial pool.
        compare: Measure every method that can draw ``size`` queries; stderr names the others.
    """
    sampling_method = next((name for name in METHODS if name == method), None)
    if sampling_method is None:
        raise InputError(f"There is no method {method!r}. Methods are: {', '.join(METHODS)}.")
    all_initial_texts = [str(record["query"]) for record in initial]
    initial_texts = [all_initial_texts[row] for row in choose.distinct(all_initial_texts)]
    large_texts = [str(record["query"]) for record in large]
    new_rows = choose.distinct(large_texts, initial_texts)
    count = size or len(initial_texts)
    if count > len(new_rows):
        raise InputError(
            f"{count:,} queries cannot be sampled: the pool has {len(new_rows):,} different "
            "queries that are not in the initial pool. Give a larger pool, or a smaller --size."
        )
    started = time.perf_counter()
    initial_vectors = _embed(initial_texts, encoder)
    new_vectors = _embed([large_texts[row] for row in new_rows], encoder)
    seconds = {"embedding": time.perf_counter() - started}
    note(f"Sampling {count:,} of {len(new_rows):,} queries …")
    similarity_to_initial = choose.best_similarity(new_vectors, initial_vectors)
    figures = {"initial": pool_figures(initial_vectors, new_vectors, similarity_to_initial)}
    chosen: list[int] = []
    # Without ``compare``, measure only the chosen method and the control, the last of ``METHODS``.
    for name in METHODS if compare else dict.fromkeys((sampling_method, METHODS[-1])):
        started = time.perf_counter()
        try:
            vectors = (initial_vectors, new_vectors)
            rows = choose.sample(name, *vectors, count, extremes=extremes, seed=seed)
        except InputError as error:
            if name == sampling_method:
                raise
            # The pool may hold too few extreme queries for this method, or too few others.
            note(f"{name} is not compared: {error}")
            continue
        seconds[name] = time.perf_counter() - started
        figures[name] = pool_figures(new_vectors[rows], new_vectors, similarity_to_initial)
        if name == sampling_method:
            chosen = rows
    sheet = [sheet_record(large[new_rows[row]]) for row in chosen]
    return SampledPool(sheet, sampling_method, seed, len(large), len(new_rows), figures, seconds)


def _embed(texts: Sequence[str], encoder: Encoder) -> Vectors:
    batches = []
    with progress_bar("Embedding", len(texts)) as advance:
        for start in range(0, len(texts), BATCH_SIZE):
            batches.append(encoder.embed(texts[start : start + BATCH_SIZE]))
            advance(len(batches[-1]))
    return np.concatenate(batches)
