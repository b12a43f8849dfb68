"""Checkpoints are data: whatever one names, reading it calls nothing."""

from __future__ import annotations

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def strict(saver: Any) -> Any:
    """Return a checkpointer that makes plain values and LangGraph's own types of what it reads.

    By LangGraph's default a checkpoint may name any function of any module, which is called when
    the checkpoint is read: whoever can write to its file could run code. A serializer with a list
    of the types that it makes (``allowed_msgpack_modules``) stays as it is.

    Args:
        saver: A checkpointer, which is left as it is; or what ``compile`` takes in its place.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    made = copy.copy(saver)
    made.serde = _strict(saver.serde)
    return made


def _strict(serde: Any) -> Any:
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, _strict(serde.serde))
    if isinstance(serde, JsonPlusSerializer) and serde._allowed_msgpack_modules is True:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return serde
