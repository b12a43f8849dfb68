"""Where a graph index may stand in for the exact search, with the graph of Qdrant's own engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge
from numpy.typing import NDArray

from casewright.stores import CaseSchema
from casewright.stores.query import StoreQuery
from casewright.stores.stored import QualityScale
from tests.stores.helpers import vector_facet

CASES, DIMENSION, BEST = 6000, 64, 10


def clustered(
    rng: np.random.Generator, centres: NDArray[np.float64], n: int
) -> NDArray[np.float32]:
    near = centres[rng.integers(0, len(centres), n)] + rng.normal(size=(n, DIMENSION)) * 0.12
    return (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)


class Graph:
    """Cases of a given spread of quality in a shard that has a graph."""

    def __init__(self, folder: Path, spread: float) -> None:
        rng = np.random.default_rng(7)
        centres = rng.normal(size=(100, DIMENSION))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        units = clustered(rng, centres, CASES)
        qualities = rng.normal(0, spread, CASES)
        self.queries = clustered(rng, centres, 30)
        self.schema = CaseSchema("plain", (vector_facet("a", DIMENSION),), quality_range=(-20, 20))
        self.scale = QualityScale.fit(qualities, (-20, 20))
        stored = np.array([[self.scale.stored(quality)] for quality in qualities])
        vectors = np.concatenate([units, stored], axis=1).astype(np.float32)
        self.shard = edge.EdgeShard.create(
            str(folder),
            edge.EdgeConfig(
                vectors=edge.EdgeVectorParams(size=DIMENSION + 1, distance=edge.Distance.Dot),
                hnsw_config=edge.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10),
                optimizers=edge.EdgeOptimizersConfig(indexing_threshold=100),
            ),
        )
        points = [edge.Point(i, vector, {}) for i, vector in enumerate(vectors)]
        self.shard.update(edge.UpdateOperation.upsert_points(points))
        self.shard.optimize()
        assert self.shard.info().indexed_vectors_count == CASES

    def store_query(self, query: NDArray[np.float32], lambda_b: float) -> StoreQuery:
        return StoreQuery.of(self.schema, query, None, lambda_b, self.scale)

    def recall(self, lambda_b: float) -> float:
        """Return the share of the exact ten best that the graph finds."""
        shares = []
        for query in self.queries:
            vector = self.store_query(query, lambda_b).vector.tolist()
            found = [
                {
                    point.id
                    for point in self.shard.query(
                        edge.QueryRequest(
                            query=edge.Query.Nearest(vector),
                            limit=BEST,
                            params=edge.SearchParams(exact=exact, hnsw_ef=32),
                        )
                    )
                }
                for exact in (True, False)
            ]
            shares.append(len(found[0] & found[1]) / BEST)
        return float(np.mean(shares))


@pytest.fixture(scope="module", params=[0.2, 2.0], ids=["spread 0.2", "spread 2"])
def graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Graph]:
    made = Graph(tmp_path_factory.mktemp("shard"), request.param)
    yield made
    made.shard.close()


def test_graph_index_has_high_recall_where_exact_search_is_not_required(graph: Graph) -> None:
    asked = {
        lambda_b: graph.store_query(graph.queries[0], lambda_b).quality_leads
        for lambda_b in (1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.6, 0.4, 0.2, 0.1)
    }
    recalls = {lambda_b: graph.recall(lambda_b) for lambda_b in asked}
    assert min(recalls[lambda_b] for lambda_b, exact in asked.items() if not exact) > 0.95
    assert min(recalls[lambda_b] for lambda_b, exact in asked.items() if exact) < 0.8


def test_exact_search_is_required_for_quality_alone_but_not_for_similarity_alone(
    graph: Graph,
) -> None:
    assert graph.store_query(graph.queries[0], 0.0).quality_leads
    assert not graph.store_query(graph.queries[0], 1.0).quality_leads
