"""Files that are damaged at any byte: an error says so, or every answer is what it was."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Bounds, Counts
from casewright.bench.soak.workload import WordEncoder, answers, notes, schema, write_notes
from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.encoders.onnx_cache import made_once
from casewright.stores.engines.file_blocks import blocks, copy_files
from casewright.stores.engines.upkeep import repair_folder

#: Of so many damages, one is repaired.
REPAIRED = 5
TEXTS = [f"text {number}" for number in range(50)]
GRAPHS = ("one.onnx", "two.onnx")


def damaged_stores(bounds: Bounds, folder: Path) -> Counts:
    """Damage a file of a store, closed or left by a kill, and compare all its answers."""
    counts, chance = Counts("damaged store"), random.Random(bounds.seed)
    kinds = {}
    for name, engine in (("edge", "edge"), ("local", "local")):
        write_notes(folder / name, engine)
        kinds[name] = answers(folder / name)
    with CaseStore(schema(), folder / "edge") as store:
        store.delete(store.add(notes(900, 901)))
        copy_files(folder / "edge", folder / "killed")
    kinds["killed"] = kinds["edge"] = answers(folder / "edge")
    for number in bounds.trials(counts):
        kind = chance.choice(sorted(kinds))
        place = copy_files(folder / kind, folder / "trial")
        how = damage(place, chance)
        outcome, found = in_child(answers, place)
        told = outcome == "told" and ("Damaged" in found or "InputError" in found)
        same = outcome == "done" and found == kinds[kind]
        state = "sound" if same else "told" if told else f"{outcome} {_shown(found, kinds[kind])}"
        if told and number % REPAIRED == 0:
            state = _repaired(place, kinds[kind], counts)
        counts.add(state, f"{bounds.seed}.{number} {kind} {how}")
        shutil.rmtree(place)
    return counts


def _repaired(place: Path, before: dict[str, Any], counts: Counts) -> str:
    """Repair a store: it must keep nothing but true cases, and tell how many it lost."""
    outcome, made = in_child(repair_folder, place)
    if outcome == "told":
        # What a collection is made like is gone, too: that is said.
        return "told"
    again, found = in_child(answers, place)
    if outcome != "done" or again != "done":
        return f"repair {outcome} {made!r:.200}, then {again} {found!r:.200}"
    if not made:
        # What was damaged is no case: the engine's record.
        return "told" if found == before else "repair says that nothing is damaged"
    (repaired,) = made
    gone = len(before["cases"].keys() - found["cases"].keys())
    back = len(found["cases"].keys() - before["cases"].keys())
    if any(case != before["cases"].get(id_, case) for id_, case in found["cases"].items()):
        return "repaired, cases are others than they were"
    if repaired.back is not None and repaired.back - repaired.lost < back - gone:
        return f"repaired, {back} deleted cases are there again: {repaired}"
    if repaired.lost is not None and repaired.lost - repaired.back < gone - back:
        counts.lost += gone
        return f"repaired, {gone} cases are gone: {repaired}"
    return "told"


def damaged_caches(bounds: Bounds, folder: Path) -> Counts:
    """Damage a cache's files: what it gives must be right all the same."""
    counts, chance = Counts("damaged cache"), random.Random(bounds.seed)
    right = WordEncoder().embed(TEXTS)
    embedded(folder / "vectors")
    graphs(folder / "graphs")
    tried: dict[str, tuple[Callable[[Path], Any], Any]] = {
        "vectors": (embedded, right.tobytes()),
        "graphs": (graphs, [name.encode() * 5000 for name in GRAPHS]),
    }
    for number in bounds.trials(counts):
        kind = chance.choice(sorted(tried))
        place = copy_files(folder / kind, folder / "trial")
        how = damage(place, chance)
        outcome, found = in_child(tried[kind][0], place)
        right_ = outcome == "done" and found == tried[kind][1]
        counts.add(
            "sound" if right_ else f"{outcome} {found!r:.200}", f"{bounds.seed}.{number} {how}"
        )
        shutil.rmtree(place)
    return counts


def embedded(folder: Path) -> bytes:
    """Return the bytes of vectors that a cache gives."""
    return np.asarray(CachedEncoder(WordEncoder(), folder).embed(TEXTS)).tobytes()


def graphs(folder: Path) -> list[bytes]:
    """Return what a cache of graphs has, once it is needed."""

    def make() -> None:
        for name in GRAPHS:
            (folder / name).write_bytes(name.encode() * 5000)

    made_once(folder, GRAPHS, "two graphs", make)
    return [(folder / name).read_bytes() for name in GRAPHS]


def damage(folder: Path, chance: random.Random) -> str:
    """Damage a file below a folder, and say how."""
    # An empty one has nothing to be damaged.
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size]
    file = chance.choice(files)
    how = chance.choice(("flip", "flip", "flip", "zero", "noise", "cut", "gone"))
    size = file.stat().st_size
    with file.open("rb") as opened:
        written = [at for at, _ in blocks(opened.fileno(), 0, size)] or [0]
    start = chance.choice(written)
    at = chance.randrange(start, min(start + (1 << 16), size))
    if how == "gone":
        file.unlink()
    elif how == "cut":
        os.truncate(file, at)
    else:
        _overwrite(file, at, how, chance)
    return f"{how} {file.relative_to(folder)} at {at}"


def _overwrite(file: Path, at: int, how: str, chance: random.Random) -> None:
    length = 1 if how == "flip" else chance.choice((4, 256, 5000))
    with file.open("r+b") as opened:
        opened.seek(at)
        old = opened.read(length)
        new = bytes(len(old)) if how == "zero" else chance.randbytes(len(old))
        if how == "flip":
            new = bytes([old[0] ^ 1 << chance.randrange(8)])
        opened.seek(at)
        opened.write(new)


def _shown(found: Any, before: dict[str, Any]) -> str:
    if not isinstance(found, dict):
        return f"{found!r:.200}"
    return "other " + ", ".join(name for name in before if found.get(name) != before[name])
