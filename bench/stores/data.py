"""Random vectors for the benchmark of stores, and measures of an answer's exactness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
#: By facet name: the vectors of a query, and the weights of a query.
Query = Mapping[str, Vectors]
Weights = Mapping[str, float]

FACETS = ("question", "support", "entities")
DIMENSION = 384
#: Number of cases in an answer.
K = 10
#: Sets of facet weights, which the queries use in turn. The second set has only one facet.
WEIGHT_SETS = ((1 / 3, 1 / 3, 1 / 3), (1.0, 0.0, 0.0), (0.25, 0.40, 0.35), (0.6, 0.3, 0.1))
#: The mixture of Gaussians. With these values, the 1st, 10th and 50th neighbours of a vector are as
#: near as in a set of equally many Wikipedia paragraphs that MiniLM embeds.
TOPIC_COUNT = 50  # number of clusters
SPREAD = 2.0  # length of a vector's offset from its cluster's centre, which has length 1
SHARED_VARIANCE = 0.5  # share of the offset's variance that a case's facets have in common
DECAY = 0.8  # exponent with which the offset's size falls from dimension to dimension
CHUNK_SIZE = 5000  # number of cases in a batch
TOLERANCE = 1e-6  # scores this near count as equal, since stores compute in 32 bits

#: Every case has these texts, one for each facet, and this solution.
_TEXTS = (
    "May a tenant leave before the lease has ended, and what is owed?",
    "A tenant who leaves before the end of a fixed term remains liable for the rent until the "
    "premises are let again, but the landlord must take reasonable steps to find another tenant. "
    "What the landlord saves by these steps, or could have saved, is set off against the claim. "
    "The parties may agree on a fee instead, which then is all that is owed.",
    "tenant; fixed term; landlord; rent",
)
_SOLUTION = "Yes, for the rent until another tenant is found, less what the landlord could save."


def texts_of(number: int) -> dict[str, Any]:
    """Return the problem and solution of a case; each text starts with the case's number."""
    problem = {name: f"{number} {text}" for name, text in zip(FACETS, _TEXTS, strict=True)}
    return {"problem": problem, "solution": f"{number} {_SOLUTION}"}


def write_vectors(file: Path, count: int, seed: int, stream: int) -> None:
    """Write an array (facets, count, dimension) of unit vectors from a mixture of Gaussians.

    Each case is near the centres of one cluster. As in embeddings of text, the offsets have a
    falling spectrum, and the offsets of a case's facets correlate. ``stream`` is the number of a
    random stream; all streams of a seed have the same centres.
    """
    centres = np.random.default_rng(seed).normal(size=(len(FACETS), TOPIC_COUNT, DIMENSION))
    centres /= np.linalg.norm(centres, axis=2, keepdims=True)
    spectrum = (1 + np.arange(DIMENSION) / 8) ** -DECAY
    spectrum *= SPREAD / np.linalg.norm(spectrum)
    rng = np.random.default_rng([seed, stream])
    shape = (len(FACETS), count, DIMENSION)
    file_vectors = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, count, CHUNK_SIZE):
        size = min(CHUNK_SIZE, count - start)
        topics = rng.integers(TOPIC_COUNT, size=size)
        common = rng.normal(size=(size, DIMENSION))
        for facet in range(len(FACETS)):
            noise = rng.normal(size=(size, DIMENSION))
            offsets = np.sqrt(SHARED_VARIANCE) * common + np.sqrt(1 - SHARED_VARIANCE) * noise
            vectors = centres[facet, topics] + offsets * spectrum
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            file_vectors[facet, start : start + size] = vectors
    file_vectors.flush()


def query_of(vectors: Vectors, number: int) -> Query:
    """Return the query with this number from an array (facets, queries, dimension)."""
    return {name: vectors[facet, number] for facet, name in enumerate(FACETS)}


def weights_of(number: int) -> Weights:
    """Return the facet weights of the query with this number."""
    return dict(zip(FACETS, WEIGHT_SETS[number % len(WEIGHT_SETS)], strict=True))


def exact_scores(cases: Vectors, queries: Vectors) -> NDArray[np.float64]:
    """Return an array (queries, cases) of the weighted sums of cosines, computed in 64 bits.

    Cases and queries are arrays (facets, rows, dimension) of unit vectors.
    """
    weights = np.array([WEIGHT_SETS[i % len(WEIGHT_SETS)] for i in range(queries.shape[1])])
    scores = np.zeros((queries.shape[1], cases.shape[1]))
    for facet in range(len(cases)):
        weighted = queries[facet].astype(np.float64) * weights[:, facet, None]
        for start in range(0, cases.shape[1], CHUNK_SIZE):
            chunk = cases[facet, start : start + CHUNK_SIZE].astype(np.float64)
            scores[:, start : start + CHUNK_SIZE] += weighted @ chunk.T
    return scores


def recall(answer: Sequence[int], scores: NDArray[np.float64], k: int = K) -> float:
    """Return the share of the k best cases that are among an answer's first k case numbers."""
    kth_best = np.partition(scores, -k)[-k]
    return float(np.sum(scores[list(set(answer[:k]))] >= kth_best - TOLERANCE)) / k


def is_same_order(answer: Sequence[int], scores: NDArray[np.float64], k: int = K) -> bool:
    """Return true if an answer begins with the k best cases in order; equal scores may differ."""
    if len(answer) < k or len(set(answer[:k])) < k:
        return False
    best = np.sort(scores)[::-1][:k]
    return bool(np.all(np.abs(scores[list(answer[:k])] - best) <= TOLERANCE))
