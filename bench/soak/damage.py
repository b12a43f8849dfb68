"""Files that are damaged at any byte: an error says so, or every answer is as before."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Bounds, Counts
from casewright.bench.soak.workload import WordEncoder, answers, notes, schema, write_notes
from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.engines.file_blocks import blocks, copy_files
from casewright.stores.engines.upkeep import repair_folder

#: Of so many damages, one is repaired.
REPAIRED = 5
TEXTS = [f"text {number}" for number in range(50)]
#: Returns the outcome of a trial, by its number, the original, the damaged copy and the damage.
Judge = Callable[[int, Path, Path, str], str]


def damages(bounds: Bounds, counts: Counts, folder: Path, *kinds: str, judge: Judge) -> Counts:
    """Damage a copy of a folder in every trial, and count the outcomes.

    Args:
        bounds: Of the trials.
        counts: Are added to, and returned.
        folder: Holds the original folders.
        kinds: Their names.
        judge: Returns the outcome of a trial.
    """
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
    """Damage a file below a folder, and return how."""
    # An empty file has nothing to be damaged.
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size]
    file = chance.choice(files)
    how = chance.choice(("flip", "flip", "flip", "zero", "noise", "cut", "gone"))
    size = file.stat().st_size
    with file.open("r+b") as stream:
        written = [at for at, _ in blocks(stream.fileno(), 0, size)] or [0]
        start = chance.choice(written)
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
    """Damage a file of a store, closed or left by a kill, and compare all its answers."""
    counts, before = Counts("damaged store"), dict[str, Any]()
    for engine in ("edge", "local"):
        write_notes(folder / engine, engine)
        before[engine] = answers(folder / engine)
    with CaseStore(schema(), folder / "edge") as store:
        store.delete(store.add(notes(900, 901)))
        copy_files(folder / "edge", folder / "killed")
    before["killed"] = before["edge"] = answers(folder / "edge")

    def judge(number: int, original: Path, copy: Path, how: str) -> str:
        outcome, result = in_child(answers, copy)
        whole = before[original.name]
        if outcome == "done" and result == whole:
            return "sound"
        if outcome == "told" and ("Damaged" in result or "InputError" in result):
            return _repaired(copy, whole, counts) if number % REPAIRED == 0 else "told"
        if isinstance(result, dict):
            result = [name for name in whole if result.get(name) != whole[name]]
        return f"{outcome}, others are {result!r:.200}"

    return damages(bounds, counts, folder, *sorted(before), judge=judge)


def _repaired(copy: Path, before: Mapping[str, Any], counts: Counts) -> str:
    """Repair a store: it must keep nothing but true cases, and tell how many it lost."""
    outcome, repairs = in_child(repair_folder, copy)
    if outcome == "told":
        # The settings of a collection are gone too: the error says so.
        return "told"
    again, after = in_child(answers, copy)
    if outcome != "done" or again != "done":
        return f"repair {outcome} {repairs!r:.200}, then {again} {after!r:.200}"
    if not repairs:
        # The damage was in the engine's record, and in no case.
        return "told" if after == before else "repair says that nothing is damaged"
    (repaired,) = repairs
    gone = len(before["cases"].keys() - after["cases"].keys())
    back = len(after["cases"].keys() - before["cases"].keys())
    if any(case != before["cases"].get(id_, case) for id_, case in after["cases"].items()):
        return "repaired, cases are others than they were"
    if repaired.back is not None and repaired.back - repaired.lost < back - gone:
        return f"repaired, {back} deleted cases are there again: {repaired}"
    if repaired.lost is not None and repaired.lost - repaired.back < gone - back:
        counts.lost += gone
        return f"repaired, {gone} cases are gone: {repaired}"
    return "told"


def damaged_caches(bounds: Bounds, folder: Path) -> Counts:
    """Damage a cache's files: the vectors that it gives must be right all the same."""
    embedded(folder / "vectors")
    right = WordEncoder().embed(TEXTS).tobytes()

    def judge(number: int, original: Path, copy: Path, how: str) -> str:
        outcome, vectors = in_child(embedded, copy)
        same = outcome == "done" and vectors == right
        return "sound" if same else f"{outcome} {vectors!r:.200}"

    return damages(bounds, Counts("damaged cache"), folder, "vectors", judge=judge)


def embedded(folder: Path) -> bytes:
    """Return the bytes of vectors that a cache gives."""
    return np.asarray(CachedEncoder(WordEncoder(), folder).embed(TEXTS)).tobytes()
