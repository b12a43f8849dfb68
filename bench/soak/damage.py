"""Files with damage at any byte, and full disks: an error, or the same answers as before."""

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

from casewright.bench.soak.trials import Bounds, Counts, in_child
from casewright.bench.soak.workload import (
    WordEncoder,
    answers,
    ingested,
    notes,
    schema,
    write_documents,
    write_notes,
)
from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.engines.checksums import blocks, copy_files
from casewright.stores.engines.upkeep import repair_folder

#: Of as many damages, one is repaired.
REPAIRED = 5
TEXTS = [f"text {number}" for number in range(50)]
#: A function from a trial's number, the original, its damaged copy and the damage to an outcome.
Judge = Callable[[int, Path, Path, str], str]


def damages(bounds: Bounds, counts: Counts, folder: Path, *kinds: str, judge: Judge) -> Counts:
    """Damage a copy of an original folder in every trial, and count the outcomes."""
    chance = random.Random(bounds.seed)
    for number in bounds.trials(counts):
        original = folder / chance.choice(kinds)
        copy = copy_files(original, folder / "trial")
        how = damage(copy, chance)
        outcome = judge(number, original, copy, how)
        counts.add(outcome, f"{bounds.seed}.{number} {original.name} {how}")
        shutil.rmtree(copy)
    return counts


def damage(folder: Path, chance: random.Random) -> str:
    """Damage a file below a folder; return a text on the damage."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size]
    file = chance.choice(files)
    how = chance.choice(("flip", "flip", "flip", "zero", "noise", "cut", "gone"))
    size = file.stat().st_size
    with file.open("r+b") as stream:
        # Most blocks of an engine's files are holes.
        start = chance.choice([offset for offset, _ in blocks(stream.fileno(), 0, size)] or [0])
        at = chance.randrange(start, min(start + (1 << 16), size))
        if how == "gone":
            file.unlink()
        elif how == "cut":
            os.truncate(file, at)
        else:
            stream.seek(at)
            old = stream.read(1 if how == "flip" else chance.choice((4, 256, 5000)))
            new = bytes(len(old)) if how == "zero" else chance.randbytes(len(old))
            if how == "flip":
                new = bytes([old[0] ^ 1 << chance.randrange(8)])
            stream.seek(at)
            stream.write(new)
    return f"{how} {file.relative_to(folder)} at {at}"


def damaged_stores(bounds: Bounds, folder: Path) -> Counts:
    """Damage a file of a closed or killed store, and compare its answers."""
    counts = Counts("damaged store")
    write_notes(folder / "edge")
    with CaseStore(schema(), folder / "edge") as store:
        store.delete(store.add(notes(900, 901)))
        copy_files(folder / "edge", folder / "killed")
    right = answers(folder / "edge")

    def judge(number: int, original: Path, copy: Path, how: str) -> str:
        outcome, result = in_child(answers, copy)
        if outcome == "done" and result == right:
            return "sound"
        if outcome == "told" and ("Damaged" in result or "InputError" in result):
            return _repaired(copy, right, counts) if number % REPAIRED == 0 else "told"
        if isinstance(result, dict):
            result = [name for name in right if result.get(name) != right[name]]
        return f"{outcome}, different are {result!r:.200}"

    return damages(bounds, counts, folder, "edge", "killed", judge=judge)


def _repaired(copy: Path, before: Mapping[str, Any], counts: Counts) -> str:
    """Repair a store: it must keep only true cases, and report the number of lost ones."""
    outcome, repairs = in_child(repair_folder, copy)
    if outcome == "told":
        # The collection's settings are damaged too.
        return "told"
    read, after = in_child(answers, copy)
    if outcome != "done" or read != "done":
        return f"repair {outcome} {repairs!r:.200}, then {read} {after!r:.200}"
    if not repairs:
        # The damage was in the engine's record, not in a case.
        return "told" if after == before else "repair reports no damage"
    (repaired,) = repairs
    gone = len(before["cases"].keys() - after["cases"].keys())
    back = len(after["cases"].keys() - before["cases"].keys())
    if any(case != before["cases"].get(id_, case) for id_, case in after["cases"].items()):
        return "repaired, cases have changed"
    if repaired.back is not None and repaired.back - repaired.lost < back - gone:
        return f"repaired, {back} deleted cases are back: {repaired}"
    if repaired.lost is not None and repaired.lost - repaired.back < gone - back:
        counts.lost += gone
        return f"repaired, {gone} cases are lost: {repaired}"
    return "told"


def damaged_caches(bounds: Bounds, folder: Path) -> Counts:
    """Damage a cache's files: the cache must still return the right vectors."""
    embedded(folder / "vectors")
    right = WordEncoder().embed(TEXTS).tobytes()

    def judge(number: int, original: Path, copy: Path, how: str) -> str:
        outcome, vectors = in_child(embedded, copy)
        same = outcome == "done" and vectors == right
        return "sound" if same else f"{outcome} {vectors!r:.200}"

    return damages(bounds, Counts("damaged cache"), folder, "vectors", judge=judge)


def embedded(folder: Path) -> bytes:
    """Return the bytes of vectors from a cache."""
    return np.asarray(CachedEncoder(WordEncoder(), folder).embed(TEXTS)).tobytes()


#: Bytes of the disk.
SIZE = 64_000_000


def full_disks(bounds: Bounds, folder: Path) -> Counts:
    """Ingest with little free space, free some, ingest again: the store must then be complete."""
    counts, chance = Counts("full disk"), random.Random(bounds.seed)
    documents = write_documents(folder / "documents")
    right = ingested(folder / "whole", documents)
    try:
        with _mounted(folder / "disk") as disk:
            for number in bounds.trials(counts):
                left = chance.randrange(0, 30_000_000)
                filler = disk / "filling"
                with filler.open("wb") as file:
                    size = shutil.disk_usage(disk).free - left
                    os.posix_fallocate(file.fileno(), 0, max(1, size))
                first, error = in_child(ingested, disk / "store", documents)
                filler.unlink()
                second, result = in_child(ingested, disk / "store", documents)
                if second != "done" or result != right:
                    counts.lost += 1
                    outcome = f"then {second} {result!r:.200}"
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
