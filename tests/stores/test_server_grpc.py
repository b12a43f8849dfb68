"""The same server over gRPC (``prefer_grpc``), as far as stores use it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client import grpc as messages
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

from casewright.errors import StoreUnavailableError
from casewright.stores import CaseStore, Change
from casewright.stores.engines.server_options import ServerOptions
from tests.stores.helpers import note, note_schema


class LocalMode(grpc.GenericRpcHandler):
    """Answers calls from qdrant-client's local mode, and remembers them.

    Each method is named as in Qdrant's protocol, service and call.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._client = QdrantClient(":memory:")
        self._lock = threading.Lock()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        service, call = details.method.rsplit(".", 1)[1].split("/")
        method, request = getattr(self, f"{service}_{call}"), REQUESTS[f"{service}_{call}"]

        def answer(asked: Any, context: grpc.ServicerContext) -> Any:
            self.calls.append((call, asked))
            try:
                with self._lock:
                    return method(asked)
            except ValueError:
                context.abort(grpc.StatusCode.NOT_FOUND, "Collection `notes` doesn't exist!")

        return grpc.unary_unary_rpc_method_handler(
            answer, request.FromString, lambda message: message.SerializeToString()
        )

    def Collections_List(self, _: Any) -> Any:  # noqa: N802
        return messages.ListCollectionsResponse()

    def Collections_Get(self, asked: Any) -> Any:  # noqa: N802
        info = self._client.get_collection(asked.collection_name)
        return messages.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))

    def Collections_Create(self, asked: Any) -> Any:  # noqa: N802
        vector = models.VectorParams(
            size=asked.vectors_config.params.size, distance=models.Distance.DOT
        )
        self._client.create_collection(
            asked.collection_name,
            vectors_config=vector,
            metadata=GrpcToRest.convert_payload(asked.metadata),
        )
        return messages.CollectionOperationResponse(result=True)

    def Collections_Delete(self, asked: Any) -> Any:  # noqa: N802
        self._client.delete_collection(asked.collection_name)
        return messages.CollectionOperationResponse(result=True)

    def Points_CreateFieldIndex(self, _: Any) -> Any:  # noqa: N802
        return DONE

    def Points_Upsert(self, asked: Any) -> Any:  # noqa: N802
        points = [GrpcToRest.convert_point_struct(point) for point in asked.points]
        self._client.upsert(asked.collection_name, points)
        return DONE

    def Points_Delete(self, asked: Any) -> Any:  # noqa: N802
        selector = GrpcToRest.convert_points_selector(asked.points)
        self._client.delete(asked.collection_name, selector)
        return DONE

    def Points_Get(self, asked: Any) -> Any:  # noqa: N802
        found = self._client.retrieve(
            asked.collection_name,
            [GrpcToRest.convert_point_id(one) for one in asked.ids],
            with_vectors=asked.with_vectors.enable,
        )
        return messages.GetResponse(result=[RestToGrpc.convert_record(one) for one in found])

    def Points_Count(self, asked: Any) -> Any:  # noqa: N802
        counted = self._client.count(asked.collection_name, condition(asked))
        return messages.CountResponse(result=messages.CountResult(count=counted.count))

    def Points_Scroll(self, asked: Any) -> Any:  # noqa: N802
        found, _ = self._client.scroll(
            asked.collection_name, scroll_filter=condition(asked), limit=asked.limit
        )
        return messages.ScrollResponse(result=[RestToGrpc.convert_record(one) for one in found])

    def Points_Query(self, asked: Any) -> Any:  # noqa: N802
        return messages.QueryResponse(result=self._found(asked))

    def Points_QueryBatch(self, asked: Any) -> Any:  # noqa: N802
        results = [messages.BatchResult(result=self._found(one)) for one in asked.query_points]
        return messages.QueryBatchResponse(result=results)

    def _found(self, asked: Any) -> list[Any]:
        found = self._client.query_points(
            asked.collection_name,
            query=GrpcToRest.convert_query(asked.query),
            query_filter=condition(asked),
            limit=asked.limit,
            with_vectors=True,
        )
        return [RestToGrpc.convert_scored_point(point) for point in found.points]


DONE = messages.PointsOperationResponse(
    result=messages.UpdateResult(operation_id=0, status=messages.UpdateStatus.Completed)
)
REQUESTS = {
    "Collections_List": messages.ListCollectionsRequest,
    "Collections_Get": messages.GetCollectionInfoRequest,
    "Collections_Create": messages.CreateCollection,
    "Collections_Delete": messages.DeleteCollection,
    "Points_CreateFieldIndex": messages.CreateFieldIndexCollection,
    "Points_Upsert": messages.UpsertPoints,
    "Points_Delete": messages.DeletePoints,
    "Points_Get": messages.GetPoints,
    "Points_Count": messages.CountPoints,
    "Points_Scroll": messages.ScrollPoints,
    "Points_Query": messages.QueryPoints,
    "Points_QueryBatch": messages.QueryBatchPoints,
}


def condition(asked: Any) -> Any:
    return GrpcToRest.convert_filter(asked.filter) if asked.HasField("filter") else None


@contextmanager
def serving(handler: grpc.GenericRpcHandler) -> Iterator[tuple[str, ServerOptions]]:
    """Serve: the URL, and the options to reach it."""
    started = grpc.server(ThreadPoolExecutor(4), handlers=(handler,))
    port = started.add_insecure_port("127.0.0.1:0")
    started.start()
    client = {"prefer_grpc": True, "grpc_port": port}
    scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8)
    try:
        yield (
            f"http://127.0.0.1:{port}",
            ServerOptions(
                client=client,
                collection={
                    "shard_number": 2,
                    "quantization_config": models.ScalarQuantization(scalar=scalar),
                },
                vectors={"on_disk": True},
                indexes={
                    "year": models.IntegerIndexParams(type="integer", lookup=True, range=True)
                },
            ),
        )
    finally:
        started.stop(0).wait()


def test_store_reads_and_writes_over_grpc_with_its_options() -> None:
    handler = LocalMode()
    with serving(handler) as (url, options), CaseStore(note_schema(), url, server=options) as store:
        cases = [
            note(f"question {i}", i, quality=0.1 + i / 300, metadata={"year": i}) for i in range(90)
        ]
        ids = store.add(cases)
        assert (store.count(), store.count({"year": {"gte": 80}})) == (90, 10)
        (hit,) = store.search("question 7", 3, where={"year": [7]})
        assert (hit.case.solution, hit.case.quality) == (7, cases[7].quality)
        assert store.select("question", 4).certified
        assert store.retain(cases[7]).outcome == "unchanged"
        store.update({ids[0]: Change(quality=0.9)})
        assert store.get(ids[0])[0].quality == 0.9
        store.delete(ids[:5])
        assert len(store.all()) == 85
        store.clear()
        assert (store.count(), store.search("question")) == (0, [])
    made = next(asked for call, asked in handler.calls if call == "Create")
    assert made.shard_number == 2
    assert made.HasField("quantization_config")
    assert made.vectors_config.params.on_disk
    indexes = {
        asked.field_name: asked.field_index_params
        for call, asked in handler.calls
        if call == "CreateFieldIndex"
    }
    assert indexes["metadata.tenant"].keyword_index_params.is_tenant
    assert indexes["metadata.year"].integer_index_params.lookup
    queries = [asked for call, asked in handler.calls if call == "Query"]
    assert all(asked.params.exact for asked in queries)


class Refusing(grpc.GenericRpcHandler):
    """Refuses every call alike."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self.code = code
        self.calls: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.calls.append(details.method)
        return grpc.unary_unary_rpc_method_handler(
            lambda _, context: context.abort(self.code, "the reason")
        )


@pytest.mark.parametrize(
    ("code", "told", "tries"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, "API key.*UNAUTHENTICATED the reason", 1),
        (grpc.StatusCode.INVALID_ARGUMENT, "refused: INVALID_ARGUMENT the reason", 1),
        (grpc.StatusCode.UNAVAILABLE, "does not answer.*the reason.*tried 3 times", 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "busy.*the reason.*tried 3 times", 3),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_grpc_error_is_reported_and_retried_if_temporary(
    code: grpc.StatusCode, told: str, tries: int
) -> None:
    handler = Refusing(code)
    with serving(handler) as (url, options), pytest.raises(StoreUnavailableError, match=told):
        CaseStore(note_schema(), url, server=options)
    assert handler.calls == ["/qdrant.Collections/List"] * tries
