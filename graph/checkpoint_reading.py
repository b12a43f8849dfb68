"""Reading of checkpoints as data, without calls of functions that a checkpoint names."""

from __future__ import annotations

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def strict(saver: Any) -> Any:
    """Return a copy of a checkpointer that reads only plain values and LangGraph's types.

    By default LangGraph calls any function that a checkpoint names when it reads the checkpoint: an
    attacker who can write to the file could run code. A serializer with a list of allowed types
    (``allowed_msgpack_modules``) is kept, and so are the other values that ``compile`` accepts
    instead of a checkpointer.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    strict_saver = copy.copy(saver)
    strict_saver.serde = _strict(saver.serde)
    return strict_saver


def _strict(serde: Any) -> Any:
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, _strict(serde.serde))
    if isinstance(serde, JsonPlusSerializer) and serde._allowed_msgpack_modules is True:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return serde
