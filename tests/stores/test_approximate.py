"""Rules for a graph index in place of exact search, tested with the graph of Qdrant Edge."""

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


def sample_clusters(
    rng: np.random.Generator, centres: NDArray[np.float64], n: int
) -> NDArray[np.float32]:
    points = centres[rng.integers(0, len(centres), n)] + rng.normal(size=(n, DIMENSION)) * 0.12
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


class Graph:
    """A shard with a graph index, and cases whose qualities have a given spread."""

    def __init__(self, folder: Path, spread: float) -> None:
        rng = np.random.default_rng(7)
        centres = rng.normal(size=(100, DIMENSION))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        units = sample_clusters(rng, centres, CASES)
        qualities = rng.normal(0, spread, CASES)
        self.queries = sample_clusters(rng, centres, 30)
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
            id_sets = [
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
            shares.append(len(id_sets[0] & id_sets[1]) / BEST)
        return float(np.mean(shares))


@pytest.fixture(scope="module", params=[0.2, 2.0], ids=["spread 0.2", "spread 2"])
def graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Graph]:
    shard_graph = Graph(tmp_path_factory.mktemp("shard"), request.param)
    yield shard_graph
    shard_graph.shard.close()


def test_graph_index_has_high_recall_where_exact_search_is_not_required(graph: Graph) -> None:
    needs_exact = {
        lambda_b: graph.store_query(graph.queries[0], lambda_b).quality_leads
        for lambda_b in (1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.6, 0.4, 0.2, 0.1)
    }
    recalls = {lambda_b: graph.recall(lambda_b) for lambda_b in needs_exact}
    assert min(recalls[bias] for bias, required in needs_exact.items() if not required) > 0.95
    assert min(recalls[bias] for bias, required in needs_exact.items() if required) < 0.8


def test_exact_search_is_required_for_quality_alone_but_not_for_similarity_alone(
    graph: Graph,
) -> None:
    assert graph.store_query(graph.queries[0], 0.0).quality_leads
    assert not graph.store_query(graph.queries[0], 1.0).quality_leads
