"""Checks and repairs Edge's shards in a child process, since a damaged shard may crash it."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import CasewrightError, StoreDamagedError, StoreError, cleaned
from casewright.stores.engines.checksums import CHECKSUMS
from casewright.stores.engines.edge_files import stored_cases
from casewright.stores.engines.edge_shard import LAYOUT_COPY, SHARD, ShardFolder, scroll_records
from casewright.stores.engines.payload import read_edge_payload

#: Seconds after which a child counts as hanging.
MAX_SECONDS = 3600
#: A child's address space is at most this plus eight times the size of the shard's files. Without
#: the limit, Edge would allocate memory for any number of cases that a damaged file states.
EXTRA_MEMORY_BYTES = 4 << 30


def examine(folder: ShardFolder, lock: IO[str]) -> int:
    """Load a copy of an unloaded shard in a child, read every case, and return their number.

    The child holds ``lock`` too, in case this process ends first. Raise ``StoreDamagedError`` if a
    case is damaged or missing or the child crashed, ``StoreError`` if the check itself failed.
    """
    return int(_run("examine", folder, lock)["cases"])


def rebuild(folder: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    """In a child, replace a shard by a new one with the undamaged cases; see ``salvage``."""
    try:
        return _run("salvage", folder, lock)
    except StoreDamagedError:  # Edge cannot load the shard
        return _run("salvage-files", folder, lock)


def _run(task: str, folder: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    """Return a child's answer; raise the child's error, or an error if the child crashed."""
    try:
        child = child_process(task, folder, lock)
    except subprocess.TimeoutExpired as error:
        raise folder.damaged("reading the shard does not end") from error
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise folder.damaged(f"a process that loaded the shard was ended by {name}")
    try:
        answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    except (ValueError, LookupError) as error:
        raise StoreError(
            f"The store's folder {folder.store} could not be checked in a child process: "
            f"{cleaned(child.stderr[-400:]) or f'it ended with code {child.returncode}'}."
        ) from error
    if "error" in answer:
        kind = StoreDamagedError if answer["damaged"] else StoreError
        raise kind(answer["error"])
    return answer


def child_process(
    task: str, folder: ShardFolder, lock: IO[str]
) -> subprocess.CompletedProcess[str]:
    """Run a child to its end; the last line of its output is the result of ``run_task`` as JSON."""
    # With -P, no module of the working directory replaces one of Python or Casewright.
    command = [sys.executable, "-P", "-m", __name__, task, str(folder.store), folder.collection]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=MAX_SECONDS,
        pass_fds=[lock.fileno()],
        check=False,
    )


def run_task(task: str, store: str, collection: str) -> dict[str, Any]:
    """Run the task examine, salvage or salvage-files in the child; return its result or error."""
    folder = ShardFolder(Path(store), collection)
    _limit_memory(folder.path)
    try:
        if task == "examine":
            return {"cases": _check_and_count(folder)}
        return salvage(folder, by_edge=task == "salvage")
    except (CasewrightError, OSError) as error:
        # Out of memory means damage: an undamaged shard needs less than the limit.
        is_damaged = isinstance(error, StoreDamagedError) or "Out of memory" in str(error)
        return {"error": str(error), "damaged": is_damaged}


def _limit_memory(shard: Path) -> None:
    shard_bytes = sum(file.stat().st_size for file in shard.rglob("*") if file.is_file())
    limit = EXTRA_MEMORY_BYTES + 8 * shard_bytes
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    soft_limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))


def _check_and_count(folder: ShardFolder) -> int:
    count = 0
    with folder.copied() as copy, folder.converted_errors(reading=True):
        shard = copy.load()
        for record in scroll_records(shard, with_vector=True):
            copy.point(record, vector=np.asarray(record.vector, np.float32))
            count += 1
        shard.close()
    return count


def salvage(folder: ShardFolder, *, by_edge: bool) -> dict[str, Any]:
    """Replace a damaged shard by a new one with the undamaged cases, and keep the damaged files.

    If ``by_edge``, Edge reads the shard and its log before the files are read without Edge. The
    result has the fields of ``RepairResult`` except ``collection``; ``texts`` is a list of lost
    cases. Raise ``StoreDamagedError`` if the layout is lost, or Edge cannot load the shard.
    """
    try:
        dimension, layout = folder.layout()
    except StoreDamagedError:
        dimension, layout = folder.layout(LAYOUT_COPY)
    bounds: tuple[int, int] | None = None
    with suppress(StoreDamagedError):
        bounds = folder.count_bounds()
    expected = bounds and bounds[1]
    kept_ids: set[str] = set()
    vectorless: dict[str, Any] = {}

    def undamaged_cases() -> Iterator[tuple[str, Mapping[str, Any], NDArray[np.float32]]]:
        for payload, vector in _all_cases(folder, dimension, expected, by_edge, kept_ids):
            with suppress(ValueError, KeyError, TypeError):
                id_ = payload["id"]
                # A case whose vector alone is damaged stays in ``vectorless``.
                vectorless[id_] = read_edge_payload(payload, id_, None)
                read_edge_payload(payload, id_, vector)
                del vectorless[id_]
                if id_ not in kept_ids:
                    kept_ids.add(id_)
                    yield id_, payload, vector

    damaged_path = folder.replace(dimension, layout, undamaged_cases())
    return {
        "cases": len(kept_ids),
        "lost": None if expected is None else max(0, expected - len(kept_ids)),
        "back": None if expected is None else max(0, len(kept_ids) - expected),
        "texts": [{"id": id_, **case} for id_, case in vectorless.items() if id_ not in kept_ids],
        "beside": str(damaged_path),
    }


def _all_cases(
    folder: ShardFolder, dimension: int, expected: int | None, by_edge: bool, kept_ids: set[str]
) -> Iterator[tuple[Mapping[str, Any], NDArray[np.float32]]]:
    """Yield cases until none is missing; the caller adds undamaged cases to ``kept_ids``."""
    if by_edge:
        yield from _loaded_cases(folder)
    # If a file is damaged, Edge may drop cases that can be read from the files. Cases without an id
    # are read last, since some of them are deleted cases.
    for with_id in (True, False):
        is_complete = by_edge if expected is None else len(kept_ids) >= expected
        if is_complete:
            return
        for case in stored_cases(folder.path / SHARD, dimension, with_id=with_id):
            # Without checksums, the payload and the vector may belong to different cases.
            if case is not None and CHECKSUMS in case[0]:
                yield case


def _loaded_cases(folder: ShardFolder) -> Iterator[tuple[Mapping[str, Any], NDArray[np.float32]]]:
    from qdrant_edge import EdgeShard

    with folder.copied() as copy, copy.converted_errors(reading=True):
        shard = EdgeShard.load(str(copy.path / SHARD))
        for record in scroll_records(shard, with_vector=True):
            payload = {"id": str(record.id), **(record.payload or {})}
            yield payload, np.asarray(record.vector, np.float32)


if __name__ == "__main__":
    print(json.dumps(run_task(*sys.argv[1:])), flush=True)
