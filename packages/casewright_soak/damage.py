"""Trials on damaged files and full disks; each must give an error or the right results."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.engines.checksums import BLOCK_BYTES, blocks, copy_files
from casewright.stores.engines.upkeep import repair_folder
from casewright_soak import workload
from casewright_soak.trials import Bounds, Counts, in_child

#: In every fifth trial, a store whose damage was detected is also repaired.
REPAIR_EVERY = 5
CACHED_TEXTS = [f"text {number}" for number in range(50)]
#: Returns the outcome of a trial; the arguments are the trial's number, the original folder, the
#: damaged copy, and the description of the damage.
Judge = Callable[[int, Path, Path, str], str]


def damage_copy(bounds: Bounds, counts: Counts, folder: Path, *names: str, judge: Judge) -> Counts:
    """In every trial, damage a copy of a random subfolder from ``names``; count the outcomes."""
    rng = random.Random(bounds.seed)
    for number in bounds.trials(counts):
        original = folder / rng.choice(names)
        copy = copy_files(original, folder / "trial")
        description = damage(copy, rng)
        outcome = judge(number, original, copy, description)
        counts.add(outcome, f"{bounds.seed}.{number} {original.name} {description}")
        shutil.rmtree(copy)
    return counts


def damage(folder: Path, rng: random.Random) -> str:
    """Damage a file below a folder; return the kind of damage, the file and the offset as text."""
    file = rng.choice([f for f in sorted(folder.rglob("*")) if f.is_file() and f.stat().st_size])
    kind = rng.choice(("flip", "flip", "flip", "zero", "noise", "cut", "remove"))
    size = file.stat().st_size
    with file.open("r+b") as stream:
        # Most blocks of an engine's files contain no data, so a block with data is chosen.
        start = rng.choice([offset for offset, _ in blocks(stream.fileno(), 0, size)] or [0])
        offset = rng.randrange(start, min(start + BLOCK_BYTES, size))
        if kind == "remove":
            file.unlink()
        elif kind == "cut":
            os.truncate(file, offset)
        else:
            stream.seek(offset)
            old = stream.read(1 if kind == "flip" else rng.choice((4, 256, 5000)))
            new = bytes(len(old)) if kind == "zero" else rng.randbytes(len(old))
            if kind == "flip":
                new = bytes([old[0] ^ (1 << rng.randrange(8))])
            stream.seek(offset)
            stream.write(new)
    return f"{kind} {file.relative_to(folder)} at {offset}"


def damaged_stores(bounds: Bounds, folder: Path) -> Counts:
    """Damage a closed store, or one whose process was killed, and read the store's contents."""
    counts = Counts("damaged store")
    workload.write_notes(folder / "edge")
    with CaseStore(workload.schema(), folder / "edge") as store:
        store.delete(store.add(workload.notes(900, 901)))  # this note must not come back
        copy_files(folder / "edge", folder / "killed")  # as if the process were killed here
    right_contents = workload.store_contents(folder / "edge")

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        ending, result = in_child(workload.store_contents, copy)
        if ending == "done" and result == right_contents:
            return "sound"
        if ending == "told" and ("Damaged" in result or "InputError" in result):
            is_repaired = number % REPAIR_EVERY == 0
            return _repair_outcome(copy, right_contents, counts) if is_repaired else "told"
        if isinstance(result, dict):
            result = [part for part in right_contents if result.get(part) != right_contents[part]]
        return f"{ending}, differences: {result!r:.200}"

    return damage_copy(bounds, counts, folder, "edge", "killed", judge=judge)


def _repair_outcome(copy: Path, before: Mapping[str, Any], counts: Counts) -> str:
    """Repair a store; return ``told`` if no case changed and the repair reported all lost cases."""
    ending, repairs = in_child(repair_folder, copy)
    if ending == "told":
        # The settings of the collection are damaged, so a repair is impossible.
        return "told"
    ending_after, after = in_child(workload.store_contents, copy)
    if ending != "done" or ending_after != "done":
        return f"repair {ending} {repairs!r:.200}, then {ending_after} {after!r:.200}"
    if not repairs:
        # Only the engine's own records were damaged, not the cases.
        return "told" if after == before else "repair reports no damage"
    (repair,) = repairs
    # ``repair.lost`` and ``repair.back`` show only by how many cases the store shrank or grew.
    lost_count = len(before["cases"].keys() - after["cases"].keys())
    back_count = len(after["cases"].keys() - before["cases"].keys())
    if any(case != before["cases"].get(id_, case) for id_, case in after["cases"].items()):
        return "repaired, cases have changed"
    if repair.back is not None and repair.back - repair.lost < back_count - lost_count:
        return f"repaired, {back_count} deleted cases are back: {repair}"
    if repair.lost is not None and repair.lost - repair.back < lost_count - back_count:
        counts.lost += lost_count
        return f"repaired, {lost_count} cases are lost: {repair}"
    return "told"


def damaged_caches(bounds: Bounds, folder: Path) -> Counts:
    """Damage a file of a vector cache; the cache must still return the right vectors."""
    cached_vectors(folder / "vectors")
    right_vectors = workload.WordEncoder().embed(CACHED_TEXTS).tobytes()

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        ending, vectors = in_child(cached_vectors, copy)
        is_right = ending == "done" and vectors == right_vectors
        return "sound" if is_right else f"{ending} {vectors!r:.200}"

    return damage_copy(bounds, Counts("damaged cache"), folder, "vectors", judge=judge)


def cached_vectors(folder: Path) -> bytes:
    """Return the vectors of ``CACHED_TEXTS`` as bytes, through a cache in the folder."""
    return np.asarray(CachedEncoder(workload.WordEncoder(), folder).embed(CACHED_TEXTS)).tobytes()


DISK_SIZE = 64_000_000  # bytes of the small disk


def full_disks(bounds: Bounds, folder: Path) -> Counts:
    """Ingest with little free space, then with enough; the second ingestion must be complete."""
    counts, rng = Counts("full disk"), random.Random(bounds.seed)
    documents = workload.write_documents(folder / "documents")
    right_chunks = workload.ingest_and_read(folder / "whole", documents)
    try:
        with _small_disk(folder / "disk") as disk:
            for number in bounds.trials(counts):
                free_bytes = rng.randrange(0, 30_000_000)
                filler, store = disk / "filler", disk / "store"
                with filler.open("wb") as file:
                    filler_size = shutil.disk_usage(disk).free - free_bytes
                    os.posix_fallocate(file.fileno(), 0, max(1, filler_size))
                first_ending, first_result = in_child(workload.ingest_and_read, store, documents)
                filler.unlink()
                second_ending, chunks = in_child(workload.ingest_and_read, store, documents)
                if second_ending != "done" or chunks != right_chunks:
                    counts.lost += 1
                    outcome = f"then {second_ending} {chunks!r:.200}"
                elif first_ending == "told" and "DiskFullError" in first_result:
                    outcome = "told"
                else:
                    is_done = first_ending == "done"
                    outcome = "sound" if is_done else f"{first_ending} {first_result}"
                counts.add(outcome, f"{bounds.seed}.{number}, {free_bytes} bytes")
                shutil.rmtree(store)
    except PermissionError as error:
        counts.skipped = str(error)
    return counts


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        raise PermissionError("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
