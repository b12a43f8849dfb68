"""Looking a store's folder over, all of it, and building anew what is damaged in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from casewright.errors import InputError, StoreDamagedError
from casewright.stores.engines.edge_child import examined, rebuilt
from casewright.stores.engines.edge_shard import SHARDS, ShardFolder
from casewright.stores.engines.embedded import RECORD, writer
from casewright.stores.engines.folder import hold_folder
from casewright.stores.engines.local_engine import LocalEngine, restore_local
from casewright.stores.engines.local_salvage import salvaged
from casewright.stores.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found of a collection.

    Attributes:
        collection: Its name; empty where the folder as a whole cannot be read.
        cases: How many it has, all of them sound.
        damage: What is damaged; empty where nothing is.
    """

    collection: str
    cases: int = 0
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was made of a damaged collection.

    Attributes:
        collection: Its name.
        cases: How many were kept.
        lost: How many were not; ``None`` where nothing tells how many there were.
        back: How many of those kept had been deleted, since nothing tells which they are; ``None``
            where that is not known either.
        texts: File of those lost cases whose text is sound, one JSON object a line; empty without.
        beside: Where the damaged files are now.
    """

    collection: str
    cases: int
    lost: int | None
    back: int | None
    texts: str
    beside: str


def check_folder(folder: Path, *, lock_seconds: float = 0.0) -> list[Looked]:
    """Read all of a store's files and cases, and return what was found.

    Raises:
        InputError: The folder holds no store.
        StoreLockedError: Another process holds it for longer than ``lock_seconds``.
        StoreError: It cannot be used.
    """
    with _held(folder, lock_seconds) as lock:
        try:
            if writer(folder) == "local":
                return _looked_local(folder, lock)
            return [_looked(disk, lock) for disk in _shards(folder)]
        except StoreDamagedError as error:
            return [Looked("", damage=str(error))]


def repair_folder(folder: Path, *, lock_seconds: float = 0.0) -> list[Repaired]:
    """Build every damaged collection of a folder anew of what is sound in it.

    The damaged files are kept beside it.

    Raises:
        InputError: The folder holds no store.
        StoreLockedError: Another process holds it for longer than ``lock_seconds``.
        StoreDamagedError: What a collection is made like cannot be read, or nothing is left of it.
        StoreError: It cannot be used.
    """
    with _held(folder, lock_seconds) as lock:
        try:
            name = writer(folder)
        except StoreDamagedError:
            name = "edge" if (folder / SHARDS).exists() else "local"
            write_whole(folder / RECORD, json.dumps({"engine": name}))
        if name == "local":
            return _repaired_local(folder, lock)
        return [
            _repaired(folder, disk.collection, rebuilt(disk, lock))
            for disk in _shards(folder)
            if _looked(disk, lock).damage
        ]


@contextmanager
def _held(folder: Path, lock_seconds: float) -> Iterator[IO[str]]:
    if not any((folder / name).exists() for name in (RECORD, SHARDS, "collection")):
        raise InputError(f"{folder} holds no case store. Give a folder of one.")
    lock = hold_folder(folder, time.monotonic() + lock_seconds)
    try:
        yield lock
    finally:
        lock.close()


def _shards(folder: Path) -> list[ShardFolder]:
    # What has a dot in its name is no collection, but was one, or is in the making.
    names = [place.name for place in folder.glob(f"{SHARDS}/*") if "." not in place.name]
    return [ShardFolder(folder, unquote(name)) for name in sorted(names)]


def _looked(disk: ShardFolder, lock: IO[str]) -> Looked:
    try:
        disk.remembered()
        disk.check(most=None)
        return Looked(disk.collection, examined(disk, lock))
    except StoreDamagedError as error:
        return Looked(disk.collection, damage=str(error))


def _looked_local(folder: Path, lock: IO[str]) -> list[Looked]:
    engine = LocalEngine(folder, lock, time.monotonic())
    try:
        return [Looked(name, cases) for name, cases in engine.check_cases().items()]
    finally:
        engine.close()


def _repaired_local(folder: Path, lock: IO[str]) -> list[Repaired]:
    try:
        LocalEngine(folder, lock, time.monotonic()).close()
        return []
    except StoreDamagedError:
        storages = [place / "storage.sqlite" for place in sorted(folder.glob("collection/*"))]
        if not storages or not all(file.is_file() for file in storages):
            raise
        restore_local(folder)
    return [_repaired(folder, file.parent.name, salvaged(file)) for file in storages]


def _repaired(folder: Path, collection: str, made: dict[str, Any]) -> Repaired:
    """Write down what could be read of lost cases, and return what was made."""
    texts = folder / f"lost-{collection}.jsonl"
    if made["texts"]:
        lines = [json.dumps(case, ensure_ascii=False) for case in made["texts"]]
        write_whole(texts, "\n".join(lines) + "\n")
    named = str(texts) if made["texts"] else ""
    counts = (made["cases"], made["lost"], made["back"])
    return Repaired(collection, *counts, named, made["beside"])
