"""Checks and repairs a shard in a child process, since a damaged shard may end the process."""

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
#: Bytes of address space of a child, in addition to eight times the size of the shard's files: a
#: damaged number of cases makes Edge allocate memory for that many cases.
EXTRA_MEMORY_BYTES = 4 << 30


def examine(disk: ShardFolder, lock: IO[str]) -> int:
    """Load a copy of an unloaded shard in a child, read every case, and return their number.

    The child holds the ``lock`` of the store's folder too. Raise ``StoreDamagedError`` if a case is
    damaged or missing or the child crashed, and ``StoreError`` if the system allows no child.
    """
    return int(_run("examine", disk, lock)["cases"])


def rebuild(disk: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    """Replace a shard by a new one with its undamaged cases, in a child; see ``salvage``."""
    try:
        return _run("salvage", disk, lock)
    except StoreDamagedError:
        # Edge cannot load the shard.
        return _run("salvage-files", disk, lock)


def _run(task: str, disk: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    """Return a child's answer; raise the child's error, or an error if the child crashed."""
    try:
        child = child_process(task, disk, lock)
    except subprocess.TimeoutExpired as error:
        raise disk.damaged("reading it does not end") from error
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise disk.damaged(f"a process that loaded it was ended by {name}")
    try:
        answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    except (ValueError, LookupError) as error:
        raise StoreError(
            f"The store's folder {disk.store} could not be checked in a child process: "
            f"{cleaned(child.stderr[-400:]) or f'it ended with code {child.returncode}'}."
        ) from error
    if "error" in answer:
        kind = StoreDamagedError if answer["damaged"] else StoreError
        raise kind(answer["error"])
    return answer


def child_process(task: str, disk: ShardFolder, lock: IO[str]) -> subprocess.CompletedProcess[str]:
    """Run a child to its end; the last line of its output is the result of ``run_task`` as JSON."""
    # With -P, no module of the working directory replaces one of Python or Casewright.
    command = [sys.executable, "-P", "-m", __name__, task, str(disk.store), disk.collection]
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


def run_task(task: str, folder: str, collection: str) -> dict[str, Any]:
    """Run a task in the child, and return the task's result, or an error."""
    disk = ShardFolder(Path(folder), collection)
    _limit_memory(disk.path)
    try:
        if task == "examine":
            return {"cases": _count_undamaged(disk)}
        return salvage(disk, by_edge=task == "salvage")
    except (CasewrightError, OSError) as error:
        # Edge reports that memory ran out, which cannot happen for an undamaged shard.
        is_damaged = isinstance(error, StoreDamagedError) or "Out of memory" in str(error)
        return {"error": str(error), "damaged": is_damaged}


def _limit_memory(shard: Path) -> None:
    shard_bytes = sum(file.stat().st_size for file in shard.rglob("*") if file.is_file())
    limit = EXTRA_MEMORY_BYTES + 8 * shard_bytes
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    soft_limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))


def _count_undamaged(disk: ShardFolder) -> int:
    count = 0
    with disk.copied() as copy, disk.converted_errors(reading=True):
        shard = copy.load()
        for record in scroll_records(shard, with_vector=True):
            copy.point(record, vector=np.asarray(record.vector, np.float32))
            count += 1
        shard.close()
    return count


def salvage(disk: ShardFolder, *, by_edge: bool) -> dict[str, Any]:
    """Replace a damaged shard by a new one with its undamaged cases, and keep the damaged files.

    If ``by_edge``, Edge reads the shard and its log first; else only the files are read. The
    result has the fields of ``RepairResult``, but ``texts`` has the lost cases themselves. Raise
    ``StoreDamagedError`` if the layout is lost, or Edge cannot load the shard.
    """
    try:
        dimension, layout = disk.layout()
    except StoreDamagedError:
        dimension, layout = disk.layout(LAYOUT_COPY)
    bounds: tuple[int, int] | None = None
    with suppress(StoreDamagedError):
        bounds = disk.count_bounds()
    expected = bounds and bounds[1]
    undamaged_ids: set[str] = set()
    texts: dict[str, Any] = {}

    def undamaged_cases() -> Iterator[tuple[str, Mapping[str, Any], NDArray[np.float32]]]:
        for payload, vector in _all_cases(disk, dimension, expected, by_edge, undamaged_ids):
            with suppress(ValueError, KeyError, TypeError):
                id_ = payload["id"]
                # A case whose vector alone is damaged stays in ``texts``.
                texts[id_] = read_edge_payload(payload, id_, None)
                read_edge_payload(payload, id_, vector)
                del texts[id_]
                if id_ not in undamaged_ids:
                    undamaged_ids.add(id_)
                    yield id_, payload, vector

    damaged_path = disk.replace(dimension, layout, undamaged_cases())
    return {
        "cases": len(undamaged_ids),
        "lost": None if expected is None else max(0, expected - len(undamaged_ids)),
        "back": None if expected is None else max(0, len(undamaged_ids) - expected),
        "texts": [{"id": id_, **case} for id_, case in texts.items() if id_ not in undamaged_ids],
        "beside": str(damaged_path),
    }


def _all_cases(
    disk: ShardFolder, dimension: int, expected: int | None, by_edge: bool, undamaged_ids: set[str]
) -> Iterator[tuple[Mapping[str, Any], NDArray[np.float32]]]:
    if by_edge:
        yield from _loaded_cases(disk)
    # The files may have cases that Edge drops because one file is damaged. Cases without an id are
    # read only if cases are missing, since some of them were deleted recently.
    for with_id in (True, False):
        is_complete = by_edge if expected is None else len(undamaged_ids) >= expected
        if is_complete:
            return
        for case in stored_cases(disk.path / SHARD, dimension, with_id=with_id):
            # Without checksums, the payload and the vector may belong to different cases.
            if case is not None and CHECKSUMS in case[0]:
                yield case


def _loaded_cases(disk: ShardFolder) -> Iterator[tuple[Mapping[str, Any], NDArray[np.float32]]]:
    from qdrant_edge import EdgeShard

    with disk.copied() as copy, copy.converted_errors(reading=True):
        shard = EdgeShard.load(str(copy.path / SHARD))
        for record in scroll_records(shard, with_vector=True):
            payload = {"id": str(record.id), **(record.payload or {})}
            yield payload, np.asarray(record.vector, np.float32)


if __name__ == "__main__":
    print(json.dumps(run_task(*sys.argv[1:])), flush=True)
