"""Reading of checkpoints as data: no function that a checkpoint names is called."""

from __future__ import annotations

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def strict(saver: Any) -> Any:
    """Return a copy of a checkpointer that reads nothing but plain values and LangGraph's types.

    By LangGraph's default a checkpoint may name any function of any module, which is called when
    the checkpoint is read: an attacker who can write to its file could run code. A serializer with
    a list of allowed types (``allowed_msgpack_modules``) stays as it is; so do the other values
    that ``compile`` takes in place of a checkpointer.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    copied = copy.copy(saver)
    copied.serde = _strict(saver.serde)
    return copied


def _strict(serde: Any) -> Any:
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, _strict(serde.serde))
    if isinstance(serde, JsonPlusSerializer) and serde._allowed_msgpack_modules is True:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return serde
