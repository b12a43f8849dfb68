"""Cases for measuring stores: three facets of clustered unit vectors, and texts to be carried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Query = Mapping[str, Vectors]
Weights = Mapping[str, float]

FACETS = ("question", "support", "entities")
DIMENSION = 384
#: Cases that a search is to find.
K = 10
#: Query i is weighted by set i modulo their number. The second asks one facet alone.
WEIGHTS = ((1 / 3, 1 / 3, 1 / 3), (1.0, 0.0, 0.0), (0.25, 0.40, 0.35), (0.6, 0.3, 0.1))
#: Clusters; how far a vector lies from its cluster's centre, whose length is 1; how much of that
#: variance a case's facets have in common; and how fast its spectrum falls. Chosen so that the 1st,
#: 10th and 50th nearest are as near as with MiniLM's vectors of as many Wikipedia paragraphs.
TOPICS, SPREAD, SHARED, FALL = 50, 2.0, 0.5, 0.8
#: Cases that are drawn at a time.
CHUNK = 5000

_QUESTION = "May a tenant leave before the lease has ended, and what is owed?"
_SUPPORT = (
    "A tenant who leaves before the end of a fixed term remains liable for the rent until the "
    "premises are let again, but the landlord must take reasonable steps to find another tenant. "
    "What the landlord saves by these steps, or could have saved, is set off against the claim. "
    "The parties may agree on a fee instead, which then is all that is owed."
)
_ENTITIES = "tenant; fixed term; landlord; rent"
_SOLUTION = "Yes, for the rent until another tenant is found, less what the landlord could save."


def problem(number: int) -> dict[str, str]:
    """Return the texts of a case, as long as those of legal questions; each tells its number."""
    texts = zip(FACETS, (_QUESTION, _SUPPORT, _ENTITIES), strict=True)
    return {name: f"{number} {text}" for name, text in texts}


def number_of(text: str) -> int:
    """Return the number of the case that a text belongs to."""
    return int(text.split(" ", 1)[0])


def solution(number: int) -> str:
    """Return the solution of a case."""
    return f"{number} {_SOLUTION}"


def write_vectors(file: Path, count: int, seed: int, stream: int) -> None:
    """Write unit vectors, array (facets, count, dimension), drawn from a mixture of Gaussians.

    Topics are the same for all streams of a seed. A case has one topic; its offsets from the
    topic's centres have a spectrum that falls, as embeddings of text have, and are correlated
    between its facets.

    Args:
        file: A NumPy file to be made.
        count: How many cases.
        seed: Of the centres and of what is drawn.
        stream: Draws of one seed that share the centres and nothing else.
    """
    centres = np.random.default_rng(seed).normal(size=(len(FACETS), TOPICS, DIMENSION))
    centres /= np.linalg.norm(centres, axis=2, keepdims=True)
    spectrum = (1 + np.arange(DIMENSION) / 8) ** -FALL
    spectrum *= SPREAD / np.linalg.norm(spectrum)
    rng = np.random.default_rng([seed, stream])
    shape = (len(FACETS), count, DIMENSION)
    out = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        topics = rng.integers(TOPICS, size=size)
        common = rng.normal(size=(size, DIMENSION))
        for facet in range(len(FACETS)):
            own = rng.normal(size=(size, DIMENSION))
            offsets = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
            made = centres[facet, topics] + offsets * spectrum
            made /= np.linalg.norm(made, axis=1, keepdims=True)
            out[facet, start : start + size] = made
    out.flush()


def query_of(vectors: Vectors, number: int) -> Query:
    """Return one query of an array (facets, queries, dimension), by facet."""
    return {name: vectors[facet, number] for facet, name in enumerate(FACETS)}


def weights_of(number: int) -> Weights:
    """Return the weights of a query, by facet."""
    return dict(zip(FACETS, WEIGHTS[number % len(WEIGHTS)], strict=True))
