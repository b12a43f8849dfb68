from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from casewright.errors import InputError
from casewright.stores import CaseStore
from casewright.stores.engines.server_options import ServerOptions
from tests.stores.helpers import note, note_schema
from tests.support.qdrant_server import LocalMode, QdrantServer

SCALAR = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
)
#: ``lambda_b`` of a search by similarity, and of one that is mainly by quality.
BY_SIMILARITY, BY_QUALITY = 1.0, 0.1


def test_server_receives_the_given_options(server: QdrantServer) -> None:
    options = ServerOptions(
        collection={
            "shard_number": 6,
            "sharding_method": models.ShardingMethod.AUTO,
            "replication_factor": 2,
            "write_consistency_factor": 2,
            "on_disk_payload": True,
            "hnsw_config": models.HnswConfigDiff(m=0, payload_m=16),
            "optimizers_config": models.OptimizersConfigDiff(indexing_threshold=50_000),
            "wal_config": models.WalConfigDiff(wal_capacity_mb=64),
            "quantization_config": SCALAR,
        },
        vectors={
            "on_disk": True,
            "datatype": models.Datatype.FLOAT16,
            "hnsw_config": models.HnswConfigDiff(ef_construct=200),
            "quantization_config": SCALAR,
        },
        client={"headers": {"x-team": "blue"}},
    )
    with CaseStore(note_schema(), server.url, server=options) as store:
        store.add([note("q")])
    (creation,) = server.requests_to("PUT", "/collections/notes")
    body = dict(creation.body)
    del body["metadata"]
    scalar = {"scalar": {"type": "int8", "always_ram": True}}
    assert body == {
        "vectors": {
            "size": 65,
            "distance": "Dot",
            "on_disk": True,
            "datatype": "float16",
            "hnsw_config": {"ef_construct": 200},
            "quantization_config": scalar,
        },
        "shard_number": 6,
        "sharding_method": "auto",
        "replication_factor": 2,
        "write_consistency_factor": 2,
        "on_disk_payload": True,
        "hnsw_config": {"m": 0, "payload_m": 16},
        "optimizers_config": {"indexing_threshold": 50_000},
        "wal_config": {"wal_capacity_mb": 64},
        "quantization_config": scalar,
    }
    assert {request.headers["x-team"] for request in server.requests} == {"blue"}


def test_tenant_and_named_fields_are_indexed_before_the_first_upsert(server: QdrantServer) -> None:
    year = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
    options = ServerOptions(indexes={"year": year, "cited by": "keyword"})
    with CaseStore(note_schema(), server.url, server=options) as store:
        store.add([note("q", metadata={"year": 1999})])
        store.add([note("another")])
    indexes = [request.body for request in server.requests_to("PUT", "/index")]
    assert indexes == [
        {"field_name": "metadata.tenant", "field_schema": {"type": "keyword", "is_tenant": True}},
        {
            "field_name": "metadata.year",
            "field_schema": {"type": "integer", "lookup": False, "range": True},
        },
        {"field_name": 'metadata."cited by"', "field_schema": "keyword"},
    ]
    puts = [request.path for request in server.requests if request.method == "PUT"]
    assert puts[0] == "/collections/notes"
    assert [path.endswith("/index") for path in puts[1:4]] == [True] * 3


def test_tenant_index_of_the_options_replaces_the_default_index(server: QdrantServer) -> None:
    index = models.KeywordIndexParams(type="keyword", is_tenant=True, on_disk=True)
    options = ServerOptions(indexes={"tenant": index})
    with CaseStore(note_schema(), server.url, server=options) as store:
        store.add([note("q")])
    (request,) = server.requests_to("PUT", "/index")
    assert request.body["field_schema"]["on_disk"] is True


def test_options_do_not_change_an_existing_collection(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url) as store:
        store.add([note("q", 1)])
    options = ServerOptions(collection={"shard_number": 3}, indexes={"year": "integer"})
    with CaseStore(note_schema(), server.url, server=options) as store:
        store.add([note("another", 2)])
        assert store.count() == 2
    assert len(server.requests_to("PUT", "/collections/notes")) == 1
    assert len(server.requests_to("PUT", "/index")) == 1


def test_server_search_is_exact_by_default(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url) as store:
        store.add([note("q")])
        assert store.search("q", lambda_b=BY_SIMILARITY)
    (request,) = server.requests_to("POST", "/query")
    assert request.body["params"] == {"exact": True}


def test_search_option_applies_to_similarity_while_quality_search_stays_exact(
    server: QdrantServer,
) -> None:
    search = models.SearchParams(
        hnsw_ef=128, quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0)
    )
    with CaseStore(note_schema(), server.url, server=ServerOptions(search=search)) as store:
        store.add([note("q", quality=0.2), note("r", quality=0.9)])
        store.search("q", lambda_b=BY_SIMILARITY)
        store.search("q", lambda_b=BY_QUALITY)
        store.search("q", lambda_b=0.0)
    params = [request.body["params"] for request in server.requests_to("POST", "/query")]
    quantization = {"rescore": True, "oversampling": 2.0}
    assert params[0] == {"hnsw_ef": 128, "quantization": quantization}
    assert params[1:] == [{"exact": True}] * 2


def test_certified_selection_and_duplicate_check_always_search_exactly(
    server: QdrantServer,
) -> None:
    options = ServerOptions(search=models.SearchParams(hnsw_ef=16))
    with CaseStore(note_schema(), server.url, server=options) as store:
        store.add([note(f"question about thing {i}", i) for i in range(40)])
        assert store.select("question about thing", 4, candidates=8).certified
        assert store.retain(note("question about thing 3", 3)).outcome == "unchanged"
        assert store.retain(note("a question about thing 3", 3)).outcome == "added"
    batches = server.requests_to("POST", "/query/batch")
    searches = [request.body for request in server.requests_to("POST", "/query")]
    searches += [search for request in batches for search in request.body["searches"]]
    assert batches
    assert [search["params"] for search in searches] == [{"exact": True}] * len(searches)


class ApproximateMode(LocalMode):
    """Halves the scores of searches that need not be exact."""

    def post_points_query(self, name: str, body: Any) -> Any:
        response = super().post_points_query(name, body)
        if not body["params"].get("exact"):
            for point in response.points:
                point.score /= 2
        return response


def test_score_of_an_approximate_hit_is_computed_from_its_vector() -> None:
    options = ServerOptions(search=models.SearchParams(hnsw_ef=16))
    with (
        QdrantServer(ApproximateMode()) as server,
        CaseStore(note_schema(), server.url, server=options) as store,
    ):
        store.add([note("one"), note("two words")])
        hits = store.search("two words")
        assert [hit.case.problem["question"] for hit in hits] == ["two words", "one"]
        assert hits[0].score == pytest.approx(hits[0].relevance, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collection": {"shards": 3}}, "'shards'.*shard_number"),
        ({"collection": {"metadata": {}}}, "'metadata'"),
        ({"collection": {"vectors_config": {}}}, "'vectors_config'"),
        ({"collection": {"shard_number": "many"}}, "shard_number"),
        ({"collection": {"sharding_method": "custom"}}, "shard keys"),
        ({"collection": 3}, "mapping"),
        ({"vectors": {"on_disc": True}}, "'on_disc'.*on_disk"),
        ({"vectors": {"size": 3}}, "'size'.*schema"),
        ({"vectors": {"datatype": "uint8"}}, "UINT8"),
        ({"client": {"api_key": "k"}}, "api_key="),
        ({"client": {"time_out": 3}}, "'time_out'.*prefer_grpc"),
        ({"search": {"hnsw_ef": 3}}, "SearchParams"),
        ({"indexes": {"year": "number"}}, "'year'.*integer"),
        ({"indexes": {"": "integer"}}, "''"),
        ({"indexes": "year"}, "mapping"),
        ({"parallel": 0}, "parallel=0"),
        ({"upload_batch": 1.5}, "upload_batch=1.5"),
        ({"retries": -1}, "retries=-1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_server_option_is_refused_by_name(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ServerOptions(**options)


@pytest.mark.parametrize("kind", [":memory:", "folder"])
def test_server_options_are_refused_for_memory_and_folder_stores(kind: str, tmp_path: Path) -> None:
    location = str(tmp_path / "cases") if kind == "folder" else kind
    with pytest.raises(InputError, match="ServerOptions"):
        CaseStore(note_schema(), location, server=ServerOptions())
    assert not list(tmp_path.iterdir())


def test_client_options_that_qdrant_client_rejects_raise_input_error() -> None:
    options = ServerOptions(client={"proxy": "gopher://localhost"})
    with pytest.raises(InputError, match="client refuses the server options"):
        CaseStore(note_schema(), "https://localhost:1", server=options)


def test_stores_with_different_options_do_not_share_a_connection(server: QdrantServer) -> None:
    for team in ("blue", "red"):
        with (
            CaseStore(note_schema(), server.url) as plain,
            CaseStore(
                note_schema(),
                server.url,
                server=ServerOptions(client={"headers": {"x-team": team}}),
            ) as store,
        ):
            plain.count()
            store.count()
            assert server.requests[-1].headers["x-team"] == team


@pytest.mark.parametrize(
    "url",
    [
        "http://me:wordofpass@localhost:1",
        "http://localhost:1?api_key=wordofpass",
        "http://localhost:1#wordofpass",
    ],
)
def test_url_with_a_secret_is_refused_without_showing_the_secret(url: str) -> None:
    with pytest.raises(InputError, match="api_key=") as exc_info:
        CaseStore(note_schema(), url)
    assert "wordofpass" not in str(exc_info.value)
