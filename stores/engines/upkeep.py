"""Checks a store's folder for damage, and repairs damaged collections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from casewright.errors import InputError, StoreDamagedError
from casewright.stores.engines.connections import ENGINE_FILE, ENGINE_NAME, check_engine
from casewright.stores.engines.edge_child import examine, rebuild
from casewright.stores.engines.edge_shard import SHARDS, ShardFolder
from casewright.stores.engines.folder import hold_folder
from casewright.stores.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A collection's number of cases, or its damage; ``collection`` is "" for a damaged store."""

    collection: str
    cases: int = 0
    damage: str = ""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of the repair of a damaged collection.

    ``cases``, ``lost`` and ``back`` are the numbers of kept cases, lost cases, and deleted cases
    that reappeared; ``None`` if unknown. ``texts`` is the path of a JSON Lines file with lost cases
    whose text is undamaged, empty if there are none. ``beside`` is the folder of damaged files.
    """

    collection: str
    cases: int
    lost: int | None
    back: int | None
    texts: str
    beside: str


def check_folder(folder: Path, *, lock_seconds: float = 0.0) -> list[CheckResult]:
    """Read all of a store's files and cases, and return a result for each collection.

    Raise ``InputError`` for a folder without a store, ``StoreError`` for one in use or unusable.
    """
    with _locked_store(folder, lock_seconds) as lock:
        try:
            check_engine(folder)
            return [_check_shard(shard_folder, lock) for shard_folder in _shard_folders(folder)]
        except StoreDamagedError as error:
            return [CheckResult("", damage=str(error))]


def repair_folder(folder: Path, *, lock_seconds: float = 0.0) -> list[RepairResult]:
    """Replace damaged collections by new ones with the undamaged cases; keep the damaged files.

    Raise the errors of ``check_folder``, and ``StoreError`` if a collection has lost its layout.
    """
    with _locked_store(folder, lock_seconds) as lock:
        try:
            check_engine(folder)
        except StoreDamagedError:
            write_whole(folder / ENGINE_FILE, json.dumps({"engine": ENGINE_NAME}))
        # Each shard is repaired before the next is checked: a check that raises ends the repair.
        return [
            _repair_result(folder, shard_folder.collection, rebuild(shard_folder, lock))
            for shard_folder in _shard_folders(folder)
            if _check_shard(shard_folder, lock).damage
        ]


@contextmanager
def _locked_store(folder: Path, lock_seconds: float) -> Iterator[IO[str]]:
    # "collection" is a folder of qdrant-client's local mode: ``check_engine`` tells what to do.
    if not any((folder / name).exists() for name in (ENGINE_FILE, SHARDS, "collection")):
        raise InputError(f"{folder} holds no case store. Give a case store's folder.")
    with hold_folder(folder, lock_seconds) as lock:
        yield lock


def _shard_folders(folder: Path) -> list[ShardFolder]:
    # A name with a dot belongs to an unfinished, removed or damaged collection.
    names = [path.name for path in folder.glob(f"{SHARDS}/*") if "." not in path.name]
    return [ShardFolder(folder, unquote(name)) for name in sorted(names)]


def _check_shard(shard_folder: ShardFolder, lock: IO[str]) -> CheckResult:
    try:
        shard_folder.layout()
        shard_folder.check(max_parts=None)
        return CheckResult(shard_folder.collection, examine(shard_folder, lock))
    except StoreDamagedError as error:
        return CheckResult(shard_folder.collection, damage=str(error))


def _repair_result(folder: Path, collection: str, salvage_result: dict[str, Any]) -> RepairResult:
    text_file = ""
    if lines := [json.dumps(case, ensure_ascii=False) + "\n" for case in salvage_result["texts"]]:
        text_file = str(folder / f"lost-{collection}.jsonl")
        write_whole(Path(text_file), "".join(lines))
    return RepairResult(collection, **{**salvage_result, "texts": text_file})
