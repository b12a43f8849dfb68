"""Safe reading of checkpoints: no function that a checkpoint names is called."""

from __future__ import annotations

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def restrict_types(saver: Any) -> Any:
    """Return a copy of a checkpointer that reads only plain values and LangGraph's types.

    By default LangGraph calls any function that a checkpoint names when it reads the checkpoint, so
    an attacker who can write checkpoints could run code. A serializer with a list of allowed types
    (``allowed_msgpack_modules``) stays as it is; ``None`` and booleans are returned unchanged.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    restricted_saver = copy.copy(saver)
    restricted_saver.serde = _restricted_serializer(saver.serde)
    return restricted_saver


def _restricted_serializer(serde: Any) -> Any:
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, _restricted_serializer(serde.serde))
    if isinstance(serde, JsonPlusSerializer) and serde._allowed_msgpack_modules is True:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return serde
