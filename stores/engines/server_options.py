"""Options of a store on a Qdrant server or cluster; most are passed on to ``qdrant_client``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.tenant import TENANT
from casewright.stores.where import qdrant_filter

if TYPE_CHECKING:
    from qdrant_client import models

#: The reason why an option refuses its reserved names.
_RESERVED_REASONS = {
    "collection": "The store sets the vectors by its schema, and records the schema as metadata",
    "vectors": "The store sets size and distance by its schema",
    "client": "Address, key and timeout are CaseStore(location, api_key=, timeout=)",
}
#: The reserved names that each option refuses.
_RESERVED = {
    "collection": {"collection_name", "vectors_config", "sparse_vectors_config", "metadata"},
    "vectors": {"size", "distance", "multivector_config"},
    "client": {
        *("location", "url", "host", "port", "path", "base_url", "api_key", "timeout"),
        *("cloud_inference", "local_inference_batch_size", "force_disable_check_same_thread"),
    },
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a store on a server; stores in memory and in folders have none.

    ``collection``, ``vectors`` and ``indexes`` apply only when a store creates its collection.

    Attributes:
        collection: Arguments of ``QdrantClient.create_collection``: ``shard_number``,
            ``replication_factor``, ``write_consistency_factor``, ``hnsw_config``,
            ``optimizers_config``, ``quantization_config``, ``wal_config``, ``on_disk_payload``, …
        vectors: Arguments of Qdrant's ``VectorParams``: ``on_disk``, ``datatype``, …
        client: Arguments of ``QdrantClient``, and of the ``httpx.Client`` that it makes:
            ``headers``, ``prefer_grpc``, ``verify``, ``cert``, ``proxy``, …
        search: Parameters of approximate search in ``CaseStore.search``; ``None`` for exact search.
            A search in which quality matters more than similarity is always exact.
        indexes: Maps a metadata field to its payload index: a ``PayloadSchemaType``, the name of
            one, or parameters such as ``KeywordIndexParams``. ``tenant`` always has an index.
        parallel: Maximum number of batches that are sent to the server at the same time.
        upload_batch: Maximum number of cases in one request.
        retries: Maximum number of retries of a write after a temporary failure: no answer, too many
            requests, a bad gateway. A read is retried at most twice, and all attempts of a read
            share the time limit of one request.

    Raises:
        InputError: Qdrant does not accept a name or a value.
    """

    collection: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    # Headers may contain secrets.
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    search: models.SearchParams | None = None
    indexes: Mapping[str, Any] = field(default_factory=dict)
    parallel: int = 4
    upload_batch: int = 64
    retries: int = 5

    def __post_init__(self) -> None:
        for name, minimum in (("parallel", 1), ("upload_batch", 1), ("retries", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < minimum:
                rule = f"a whole number of at least {minimum}"
                raise InputError(f"The server option {name}={value!r} is not {rule}.")
        self._check_names_and_values()

    def vector_params(self, dimension: int) -> models.VectorParams:
        """Return the parameters of a vector of ``dimension`` numbers, compared by dot product."""
        from qdrant_client import models

        dot = models.Distance.DOT
        return models.VectorParams(size=dimension, distance=dot, **dict(self.vectors))

    def payload_indexes(self) -> dict[str, Any]:
        """Return the index of each indexed field, by the field's path in the payload."""
        from qdrant_client import models

        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        return {_path_of(name): index for name, index in {TENANT: tenant, **self.indexes}.items()}

    def _check_names_and_values(self) -> None:
        import httpx
        from pydantic import ValidationError
        from qdrant_client import QdrantClient, models

        _check_names("collection", self.collection, _argument_names(QdrantClient.create_collection))
        _check_names("vectors", self.vectors, models.VectorParams.model_fields)
        # ``timeout`` is an argument of the call, not a part of the request.
        fields = {name: value for name, value in self.collection.items() if name != "timeout"}
        try:
            request = models.CreateCollection(vectors=self.vector_params(1), **fields)
        except ValidationError as error:
            # After two parts, an error's location has internal names of unions.
            errors = [f"{'.'.join(map(str, e['loc'][:2]))}: {e['msg']}" for e in error.errors()]
            reasons = "; ".join(errors[:3])
            raise InputError(f"Qdrant does not accept the server options: {reasons}.") from error
        if request.sharding_method == models.ShardingMethod.CUSTOM:
            raise InputError(
                "The server option sharding_method is CUSTOM, but a store names no shard keys. "
                "Leave it out: Qdrant spreads cases over the shards, and keeps a tenant's cases "
                "together by the index on the tenant."
            )
        if self.vectors.get("datatype") == models.Datatype.UINT8:
            raise InputError(
                "The server option datatype is UINT8, which would round unit vectors to zeros. "
                "Use FLOAT16, or a quantization_config."
            )
        _check_mapping("indexes", self.indexes)
        for name, index in self.indexes.items():
            try:
                models.CreateFieldIndex(field_name=_path_of(name), field_schema=index)
            except ValidationError as error:
                kinds = ", ".join(kind.value for kind in models.PayloadSchemaType)
                raise InputError(
                    f"The server option indexes gives {name!r} the index {index!r}. Give one of "
                    f"{kinds}, or Qdrant's parameters of one, such as models.IntegerIndexParams."
                ) from error
        arguments = _argument_names(QdrantClient.__init__) | _argument_names(httpx.Client.__init__)
        # ``QdrantClient`` takes this argument too, by ``**kwargs``.
        _check_names("client", self.client, arguments | {"grpc_compression"})
        if self.search is not None and not isinstance(self.search, models.SearchParams):
            raise InputError(
                f"The server option search is a {type(self.search).__name__}. Give Qdrant's "
                "models.SearchParams, such as SearchParams(hnsw_ef=128), or None for exact search."
            )


def _path_of(name: str) -> str:
    """Return the payload path of a metadata field, as in a condition on the field."""
    condition: Any = qdrant_filter({name: ""})
    return str(condition.must[0].key)


def _argument_names(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "kwargs"}


def _check_mapping(option: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        problem = f"The server option {option} is a {type(values).__name__}."
        raise InputError(f"{problem} Give a mapping of names to values.")


def _check_names(option: str, values: Mapping[str, Any], allowed: Collection[str]) -> None:
    _check_mapping(option, values)
    valid = set(allowed) - _RESERVED[option]
    if refused := [name for name in values if name not in valid]:
        reason = f" {_RESERVED_REASONS[option]}." if refused[0] in _RESERVED[option] else ""
        problem = f"The server option {option} has {refused[0]!r}, which is not allowed.{reason}"
        raise InputError(f"{problem} Give only these names: {', '.join(sorted(valid))}.")
