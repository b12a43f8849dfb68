"""One engine a place: stores of one process share the folder that only one client may open."""

from __future__ import annotations

import threading
from pathlib import Path

from casewright.stores.engine import Engine
from casewright.stores.qdrant_engine import QdrantEngine

_lock = threading.Lock()
_open: dict[str, tuple[Engine, int]] = {}


def acquire(
    location: str | Path, *, api_key: str | None = None, lock_seconds: float = 0.0
) -> tuple[str, Engine]:
    """Return a key to release by, and the engine for a location, opened where it is not yet."""
    text = str(location)
    if text == ":memory:":
        return "", QdrantEngine.open(text)
    remote = text.startswith(("http://", "https://"))
    key = text if remote else str(Path(text).expanduser().resolve())
    with _lock:
        engine, users = _open.get(key, (None, 0))
        if engine is None:
            engine = QdrantEngine.open(key, api_key=api_key, lock_seconds=lock_seconds)
        _open[key] = (engine, users + 1)
        return key, engine


def release(key: str, engine: Engine) -> None:
    """Give an engine back; the last user closes it."""
    if not key:
        engine.close()
        return
    with _lock:
        held, users = _open.get(key, (None, 0))
        if held is not engine:
            return
        if users > 1:
            _open[key] = (engine, users - 1)
        else:
            del _open[key]
            engine.close()
