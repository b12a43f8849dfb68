"""A disk that fills up while documents are ingested."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Bounds, Counts
from casewright.bench.soak.workload import ingested, write_documents

#: Bytes of the disk.
SIZE = 64_000_000


def full_disks(bounds: Bounds, folder: Path) -> Counts:
    """Leave little room, ingest, make room, ingest again: one error at most, and all is there."""
    counts, chance = Counts("full disk"), random.Random(bounds.seed)
    documents = write_documents(folder / "documents")
    whole = ingested(folder / "whole", documents)
    try:
        with _mounted(folder / "disk") as disk:
            for number in bounds.trials(counts):
                left = chance.randrange(0, 30_000_000)
                filling = disk / "filling"
                with filling.open("wb") as file:
                    room = shutil.disk_usage(disk).free - left
                    os.posix_fallocate(file.fileno(), 0, max(1, room))
                first, error = in_child(ingested, disk / "store", documents)
                filling.unlink()
                again, result = in_child(ingested, disk / "store", documents)
                if again != "done" or result != whole:
                    counts.lost += 1
                    outcome = f"then {again} {result!r:.200}"
                elif first == "told" and "DiskFullError" in error:
                    outcome = "told"
                else:
                    outcome = "sound" if first == "done" else f"{first} {error}"
                counts.add(outcome, f"{bounds.seed}.{number}, {left} bytes")
                shutil.rmtree(disk / "store")
    except PermissionError as error:
        counts.skipped = str(error)
    return counts


@contextmanager
def _mounted(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        raise PermissionError("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
