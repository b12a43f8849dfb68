"""Options of a Qdrant server or cluster: Qdrant's own models, passed on unchanged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.tenant import FIELD
from casewright.stores.where import qdrant_filter

if TYPE_CHECKING:
    from qdrant_client import models

#: For each option, who gives the names that the caller cannot, and what they are.
_GIVEN = {
    "collection": "The vector follows from the schema, which the metadata hold",
    "vectors": "Size and distance follow from the schema",
    "client": "Address, key and timeout are CaseStore(location, api_key=, timeout=)",
}
_OWN = {
    "collection": {"collection_name", "vectors_config", "sparse_vectors_config", "metadata"},
    "vectors": {"size", "distance", "multivector_config"},
    "client": {
        *("location", "url", "host", "port", "path", "base_url", "api_key", "timeout"),
        *("cloud_inference", "local_inference_batch_size", "force_disable_check_same_thread"),
    },
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a store at a server's URL; memory and folders have none.

    ``collection``, ``vectors`` and ``indexes`` count when the collection is made, by the first
    ``add``; a collection that is there stays as it is.

    Attributes:
        collection: Arguments of ``QdrantClient.create_collection``: ``shard_number``,
            ``replication_factor``, ``write_consistency_factor``, ``hnsw_config``,
            ``optimizers_config``, ``quantization_config``, ``wal_config``, ``on_disk_payload``, …
        vectors: Arguments of Qdrant's ``VectorParams``: ``on_disk``, ``datatype``, ``hnsw_config``,
            ``quantization_config``, …
        client: Arguments of ``QdrantClient``, and of the ``httpx.Client`` below it: ``headers``,
            ``prefer_grpc``, ``verify``, ``cert``, ``proxy``, …
        search: How ``CaseStore.search`` may be answered from an index, approximately; ``None`` is
            exactly. See ``Asked.quality_leads`` for what is answered exactly all the same.
        indexes: Metadata field to the payload index that it gets: a ``PayloadSchemaType``, its
            name, or parameters such as ``KeywordIndexParams``. ``tenant`` always has one.
        parallel: How many batches may be on their way to the server at the same time.
        upload_batch: Cases in one request.
        retries: How often a write is tried again after a failure that passes: no answer, too many
            requests, a bad gateway. A read is tried again twice at most, and no longer than one
            request may take.

    Raises:
        InputError: A name or a value that Qdrant does not take.
    """

    collection: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    # Headers may hold secrets.
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    search: models.SearchParams | None = None
    indexes: Mapping[str, Any] = field(default_factory=dict)
    parallel: int = 4
    upload_batch: int = 64
    retries: int = 5

    def __post_init__(self) -> None:
        for name, least in (("parallel", 1), ("upload_batch", 1), ("retries", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(
                    f"The server option {name}={value!r} is no whole number from {least}."
                )
        self._check_collection()
        self._check_indexes()
        self._check_client()
        self._check_search()

    def vector_params(self, dimension: int) -> models.VectorParams:
        """Return the collection's vector: ``dimension`` numbers, compared by dot product."""
        from qdrant_client import models

        return models.VectorParams(
            size=dimension, distance=models.Distance.DOT, **dict(self.vectors)
        )

    def payload_indexes(self) -> dict[str, Any]:
        """Return the payload path of each field that is indexed, with its index."""
        from qdrant_client import models

        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        return {path_of(name): index for name, index in {FIELD: tenant, **self.indexes}.items()}

    def _check_collection(self) -> None:
        from pydantic import ValidationError
        from qdrant_client import QdrantClient, models

        _check_names("collection", self.collection, _arguments(QdrantClient.create_collection))
        _check_names("vectors", self.vectors, models.VectorParams.model_fields)
        rest = {name: value for name, value in self.collection.items() if name != "timeout"}
        try:
            made = models.CreateCollection(vectors=self.vector_params(1), **rest)
        except ValidationError as error:
            # What follows two parts of a place names the members of unions, which nobody wrote.
            told = [f"{'.'.join(map(str, e['loc'][:2]))}: {e['msg']}" for e in error.errors()]
            raise InputError(
                f"The server options are not what Qdrant takes: {'; '.join(told[:3])}."
            ) from error
        if made.sharding_method == models.ShardingMethod.CUSTOM:
            raise InputError(
                "The server option sharding_method is CUSTOM, but a store names no shard keys. "
                "Leave it out: Qdrant spreads cases over the shards, and keeps a tenant's together "
                "by the index on the tenant."
            )
        if self.vectors.get("datatype") == models.Datatype.UINT8:
            raise InputError(
                "The server option datatype is UINT8, which would round unit vectors to zeros. "
                "Take FLOAT16, or a quantization_config."
            )

    def _check_indexes(self) -> None:
        from pydantic import ValidationError
        from qdrant_client import models

        _check_mapping("indexes", self.indexes)
        for name, index in self.indexes.items():
            try:
                models.CreateFieldIndex(field_name=path_of(name), field_schema=index)
            except ValidationError as error:
                kinds = ", ".join(kind.value for kind in models.PayloadSchemaType)
                raise InputError(
                    f"The server option indexes gives {name!r} the index {index!r}. Give one of "
                    f"{kinds}, or Qdrant's parameters of one, such as models.IntegerIndexParams."
                ) from error

    def _check_client(self) -> None:
        import httpx
        from qdrant_client import QdrantClient

        known = _arguments(QdrantClient.__init__) | _arguments(httpx.Client.__init__)
        _check_names("client", self.client, known | {"grpc_compression"})

    def _check_search(self) -> None:
        from qdrant_client import models

        if self.search is not None and not isinstance(self.search, models.SearchParams):
            raise InputError(
                f"The server option search is a {type(self.search).__name__}. Give Qdrant's "
                "models.SearchParams, such as SearchParams(hnsw_ef=128), or None for exact search."
            )


def path_of(name: str) -> str:
    """Return the path of a metadata field in the payload, as conditions ask for it."""
    condition: Any = qdrant_filter({name: ""})
    return str(condition.must[0].key)


def _arguments(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "kwargs"}


def _check_mapping(option: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise InputError(
            f"The server option {option} is no mapping of names to values: {type(given).__name__}."
        )


def _check_names(option: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    _check_mapping(option, given)
    valid = set(known) - _OWN[option]
    if unknown := [name for name in given if name not in valid]:
        raise InputError(
            f"The server option {option} has {unknown[0]!r}, which it cannot have. "
            f"{_GIVEN[option]}; else it takes: {', '.join(sorted(valid))}."
        )
