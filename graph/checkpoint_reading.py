"""Safe reading of checkpoints: no function that a checkpoint names is called."""

from __future__ import annotations

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def restrict_types(checkpointer: Any) -> Any:
    """Return a checkpointer's copy, which reads only plain values and LangGraph's types.

    When LangGraph reads a checkpoint, by default it calls any function that the checkpoint names,
    so an attacker who can write checkpoints could run code. A serializer with a list of allowed
    types (``allowed_msgpack_modules``) stays as it is. ``None`` and booleans, which LangGraph
    accepts in place of a checkpointer, are returned unchanged.
    """
    if not isinstance(checkpointer, BaseCheckpointSaver):
        return checkpointer
    restricted_copy = copy.copy(checkpointer)
    restricted_copy.serde = _restricted_serializer(checkpointer.serde)
    return restricted_copy


def _restricted_serializer(serde: Any) -> Any:
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, _restricted_serializer(serde.serde))
    # True allows all types and functions; None allows only LangGraph's types.
    if isinstance(serde, JsonPlusSerializer) and serde._allowed_msgpack_modules is True:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return serde
