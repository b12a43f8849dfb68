"""Engines that run in this process over a folder: each folder stays with the one that wrote it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from casewright.errors import DependencyError, InputError
from casewright.stores.engines.edge_engine import EdgeEngine
from casewright.stores.engines.edge_shard import SHARDS
from casewright.stores.engines.engine import Engine
from casewright.stores.engines.folder import damaged, hold_folder, usable
from casewright.stores.engines.local_engine import LocalEngine
from casewright.stores.whole_file import write_whole

#: At the top of a folder: the name of the engine that wrote it.
RECORD = "engine.json"
#: Qdrant Edge, and qdrant-client's local mode.
ENGINES = ("edge", "local")


def open_folder(
    folder: Path, *, lock_seconds: float = 0.0, engine: str | None = None
) -> tuple[str, Engine]:
    """Open a folder with the engine that wrote it, and return that engine's name too.

    Args:
        folder: Made where it is not there.
        lock_seconds: How long to wait for another process that holds it.
        engine: What a new folder is to be written by; ``None`` takes Edge where it is installed.

    Raises:
        InputError: It is a file, or another engine wrote it than the one named.
        DependencyError: Edge is needed, and is not installed.
        StoreLockedError: Another process holds it for longer than ``lock_seconds``.
        StoreDamagedError: Its files cannot be read; they are left as they are.
        StoreError: It cannot be made or used.
    """
    deadline = time.monotonic() + lock_seconds
    lock = hold_folder(folder, deadline)
    try:
        with usable(folder):
            written = writer(folder)
            if written:
                check_engine(folder, engine, written)
            name = written or engine or ("edge" if _edge_is_there() else "local")
            if name == "edge" and not _edge_is_there():
                raise _no_edge(folder)
            if not written:
                write_whole(folder / RECORD, json.dumps({"engine": name}))
        if name == "edge":
            return name, EdgeEngine(folder, lock)
        return name, LocalEngine(folder, lock, deadline)
    except BaseException:
        lock.close()
        raise


def check_engine(folder: str | Path, wanted: str | None, written: str) -> None:
    """Raise ``InputError`` where a folder is to be opened with another engine than its own."""
    if wanted not in (None, written):
        raise InputError(
            f"The store's folder {folder} was written by the engine {written!r}, not by "
            f"{wanted!r}. Name no engine, or build the store anew in another folder."
        )


def writer(folder: Path) -> str | None:
    """Return the name of the engine that wrote a folder; ``None`` for a new one."""
    try:
        name = json.loads((folder / RECORD).read_text(encoding="utf-8"))["engine"]
    except FileNotFoundError:
        # Written before there was a record, or it was lost.
        if (folder / "meta.json").exists() or (folder / "collection").exists():
            return "local"
        return "edge" if (folder / SHARDS).exists() else None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, f"its {RECORD} cannot be read") from error
    if name not in ENGINES:
        raise damaged(folder, f"its {RECORD} names the engine {name!r}, which is not known")
    return str(name)


def _edge_is_there() -> bool:
    try:
        import qdrant_edge  # noqa: F401
    except ImportError:
        return False
    return True


def _no_edge(folder: Path) -> DependencyError:
    return DependencyError(
        f"The store's folder {folder} needs Qdrant Edge, which is not installed or does not run "
        "here. Install it: pip install 'qdrant-edge-py>=0.9,<0.10'. Or delete the folder and build "
        "the store again, without it."
    )
