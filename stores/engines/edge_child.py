"""A shard that a killed process left is first loaded by a child: damage there may end its process.

``python -m casewright.stores.engines.edge_child TASK FOLDER COLLECTION`` is that child.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from casewright.errors import CasewrightError, StoreDamagedError, StoreError, cleaned
from casewright.stores.engines.edge_salvage import salvaged
from casewright.stores.engines.edge_shard import ShardFolder

#: Seconds after which a child that still reads is held to read for ever.
SECONDS = 3600
#: Bytes of addresses that a child may take beside eight times its shard's files: of a number that
#: is damaged Edge makes room for as many cases.
MEMORY = 4 << 30


def examined(disk: ShardFolder, lock: IO[str]) -> int:
    """Have a child load a copy of a shard and read every case; return how many there are.

    Args:
        disk: The shard, which is not loaded.
        lock: The store's folder's, which is held until the child has ended, too.

    Raises:
        StoreDamagedError: A case is not as it was written, some are missing, or the child died.
        StoreError: The system does not let it be done.
    """
    return int(_run("examine", disk, lock)["cases"])


def rebuilt(disk: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    """Have children build a shard anew of what is sound in it; see ``edge_salvage.salvaged``.

    Raises:
        StoreError: The system does not let it be done.
    """
    try:
        return _run("salvage", disk, lock)
    except StoreDamagedError:
        # Edge cannot load it.
        return _run("salvage-files", disk, lock)


def _run(task: str, disk: ShardFolder, lock: IO[str]) -> dict[str, Any]:
    try:
        done = child_process(task, disk, lock)
    except subprocess.TimeoutExpired as error:
        raise disk.damaged("reading it does not end") from error
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise disk.damaged(f"a process that loaded it was ended by {name}")
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, LookupError) as error:
        raise StoreError(
            f"The store's folder {disk.store} could not be looked into by a process of its own: "
            f"{cleaned(done.stderr[-400:]) or f'it ended with code {done.returncode}'}."
        ) from error
    if "error" in answer:
        kind = StoreDamagedError if answer["damaged"] else StoreError
        raise kind(answer["error"])
    return answer


def child_process(task: str, disk: ShardFolder, lock: IO[str]) -> subprocess.CompletedProcess[str]:
    """Run a child to its end; the last line of what it prints is ``task_done`` as JSON.

    Raises:
        subprocess.TimeoutExpired: It does not end.
    """
    # -P: no module of the folder that the command runs in takes the place of one of ours.
    command = [sys.executable, "-P", "-m", __name__, task, str(disk.store), disk.collection]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        pass_fds=[lock.fileno()],
        check=False,
    )


def task_done(task: str, folder: str, collection: str) -> dict[str, Any]:
    """Do a child's task, and return what it answers: the task's result, or an error."""
    disk = ShardFolder(Path(folder), collection)
    _bound_memory(disk.path)
    try:
        if task == "examine":
            return {"cases": _counted(disk)}
        return salvaged(disk, loading=task == "salvage")
    except (CasewrightError, OSError) as error:
        # Edge's error of the bound above, which no sound shard reaches.
        damaged = isinstance(error, StoreDamagedError) or "Out of memory" in str(error)
        return {"error": str(error), "damaged": damaged}


def _bound_memory(shard: Path) -> None:
    size = sum(file.stat().st_size for file in shard.rglob("*") if file.is_file())
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = MEMORY + 8 * size
    bound = bound if most == resource.RLIM_INFINITY else min(bound, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))


def _counted(disk: ShardFolder) -> int:
    cases = 0
    with disk.copied() as copy, disk.translated(reading=True):
        shard = copy.load()
        for point, record in copy.points(shard):
            if point is None:
                raise disk.damaged(f"the case {record.id} is not as it was written")
            cases += 1
        shard.close()
    return cases


if __name__ == "__main__":
    print(json.dumps(task_done(*sys.argv[1:])), flush=True)
