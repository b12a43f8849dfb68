"""Stores on a server that they reach over gRPC (``prefer_grpc``)."""

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
    """Answers calls by qdrant-client's local mode, and records them.

    The name of each method is the service and the call of Qdrant's protocol.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._client = QdrantClient(":memory:")
        self._lock = threading.Lock()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        service, call = details.method.rsplit(".", 1)[1].split("/")
        method, message = getattr(self, f"{service}_{call}"), REQUESTS[f"{service}_{call}"]

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            self.calls.append((call, request))
            try:
                with self._lock:
                    return method(request)
            except ValueError:
                context.abort(grpc.StatusCode.NOT_FOUND, "Collection `notes` doesn't exist!")

        return grpc.unary_unary_rpc_method_handler(
            answer, message.FromString, lambda response: response.SerializeToString()
        )

    def Collections_List(self, _: Any) -> Any:  # noqa: N802
        return messages.ListCollectionsResponse()

    def Collections_Get(self, request: Any) -> Any:  # noqa: N802
        info = self._client.get_collection(request.collection_name)
        return messages.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))

    def Collections_Create(self, request: Any) -> Any:  # noqa: N802
        vector = models.VectorParams(
            size=request.vectors_config.params.size, distance=models.Distance.DOT
        )
        self._client.create_collection(
            request.collection_name,
            vectors_config=vector,
            metadata=GrpcToRest.convert_payload(request.metadata),
        )
        return messages.CollectionOperationResponse(result=True)

    def Collections_Delete(self, request: Any) -> Any:  # noqa: N802
        self._client.delete_collection(request.collection_name)
        return messages.CollectionOperationResponse(result=True)

    def Points_CreateFieldIndex(self, _: Any) -> Any:  # noqa: N802
        return DONE

    def Points_Upsert(self, request: Any) -> Any:  # noqa: N802
        points = [GrpcToRest.convert_point_struct(point) for point in request.points]
        self._client.upsert(request.collection_name, points)
        return DONE

    def Points_Delete(self, request: Any) -> Any:  # noqa: N802
        selector = GrpcToRest.convert_points_selector(request.points)
        self._client.delete(request.collection_name, selector)
        return DONE

    def Points_Get(self, request: Any) -> Any:  # noqa: N802
        records = self._client.retrieve(
            request.collection_name,
            [GrpcToRest.convert_point_id(point_id) for point_id in request.ids],
            with_vectors=request.with_vectors.enable,
        )
        return messages.GetResponse(result=[RestToGrpc.convert_record(r) for r in records])

    def Points_Count(self, request: Any) -> Any:  # noqa: N802
        result = self._client.count(request.collection_name, request_filter(request))
        return messages.CountResponse(result=messages.CountResult(count=result.count))

    def Points_Scroll(self, request: Any) -> Any:  # noqa: N802
        records, _ = self._client.scroll(
            request.collection_name, scroll_filter=request_filter(request), limit=request.limit
        )
        return messages.ScrollResponse(result=[RestToGrpc.convert_record(r) for r in records])

    def Points_Query(self, request: Any) -> Any:  # noqa: N802
        return messages.QueryResponse(result=self._query(request))

    def Points_QueryBatch(self, request: Any) -> Any:  # noqa: N802
        results = [messages.BatchResult(result=self._query(q)) for q in request.query_points]
        return messages.QueryBatchResponse(result=results)

    def _query(self, request: Any) -> list[Any]:
        response = self._client.query_points(
            request.collection_name,
            query=GrpcToRest.convert_query(request.query),
            query_filter=request_filter(request),
            limit=request.limit,
            with_vectors=True,
        )
        return [RestToGrpc.convert_scored_point(point) for point in response.points]


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


def request_filter(request: Any) -> Any:
    return GrpcToRest.convert_filter(request.filter) if request.HasField("filter") else None


@contextmanager
def serve(handler: grpc.GenericRpcHandler) -> Iterator[tuple[str, ServerOptions]]:
    """Start a server; yield its URL, and the options of a store there."""
    server = grpc.server(ThreadPoolExecutor(4), handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
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
        server.stop(0).wait()


def test_store_reads_and_writes_over_grpc_with_its_options() -> None:
    handler = LocalMode()
    with serve(handler) as (url, options), CaseStore(note_schema(), url, server=options) as store:
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
    creation = next(request for call, request in handler.calls if call == "Create")
    assert creation.shard_number == 2
    assert creation.HasField("quantization_config")
    assert creation.vectors_config.params.on_disk
    indexes = {
        request.field_name: request.field_index_params
        for call, request in handler.calls
        if call == "CreateFieldIndex"
    }
    assert indexes["metadata.tenant"].keyword_index_params.is_tenant
    assert indexes["metadata.year"].integer_index_params.lookup
    queries = [request for call, request in handler.calls if call == "Query"]
    assert all(request.params.exact for request in queries)


class FailingHandler(grpc.GenericRpcHandler):
    """Answers every call with the same error."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self.code = code
        self.calls: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.calls.append(details.method)
        return grpc.unary_unary_rpc_method_handler(
            lambda _, context: context.abort(self.code, "the reason")
        )


@pytest.mark.parametrize(
    ("code", "message", "attempts"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, "API key.*UNAUTHENTICATED the reason", 1),
        (grpc.StatusCode.INVALID_ARGUMENT, "refused: INVALID_ARGUMENT the reason", 1),
        (grpc.StatusCode.UNAVAILABLE, "does not answer.*the reason.*tried 3 times", 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "busy.*the reason.*tried 3 times", 3),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_grpc_error_is_reported_and_retried_if_temporary(
    code: grpc.StatusCode, message: str, attempts: int
) -> None:
    handler = FailingHandler(code)
    with serve(handler) as (url, options), pytest.raises(StoreUnavailableError, match=message):
        CaseStore(note_schema(), url, server=options)
    assert handler.calls == ["/qdrant.Collections/List"] * attempts
