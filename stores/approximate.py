"""Which searches an approximate index may answer.

A graph index (HNSW) leads to the neighbours of a query by way of stored vectors. These are near
each other by their facets, since the stored quality is kept small; a query that asks for quality
above all is near none of them, and the graph misses much of what it should find. What decides is
how far the score moves with the quality and how far with the similarity, not ``lambda_b`` alone:
the same ``lambda_b`` is little for a quality from 0 to 1 and much for a log-perplexity.
"""

from __future__ import annotations

import numpy as np

from casewright.stores.asked import Asked

#: Spread of the similarities between a query of length 1 and cases, in round numbers, as of
#: sentences' MiniLM embeddings.
SPREAD = 0.1


def quality_leads(asked: Asked) -> bool:
    """Say whether the quality moves the score more than the similarity does.

    A stored quality has a standard deviation of 0.1 (see ``quality``), so that the last number of
    a query's vector is ten times what the quality adds to the score's.
    """
    return bool(abs(asked.vector[-1]) / 10 > SPREAD * np.linalg.norm(asked.vector[:-1]))
