"""The whole campaign: every kind of trial for its share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from casewright.bench.report import Report
from casewright.bench.soak.clients import served_clients
from casewright.bench.soak.counts import NAMED, Counts
from casewright.bench.soak.damage import damaged_caches, damaged_stores
from casewright.bench.soak.disk import full_disks
from casewright.bench.soak.fuzz import fuzzed
from casewright.bench.soak.kills import kills_of_ingest, kills_of_writes, random_kills
from casewright.stores.progress import note

#: Each kind, by its name on the command line, and its share of the time.
KINDS: Mapping[str, tuple[Callable[[float, int, Path], Counts], float]] = {
    "kills": (random_kills, 0.2),
    "writes": (kills_of_writes, 0.15),
    "ingest": (kills_of_ingest, 0.1),
    "damage": (damaged_stores, 0.25),
    "caches": (damaged_caches, 0.05),
    "disks": (full_disks, 0.05),
    "clients": (served_clients, 0.15),
    "input": (fuzzed, 0.05),
}


def soak(minutes: float, seed: int, kinds: Sequence[str] = ()) -> Report:
    """Run the campaign, and return its counts; what went wrong is in the notes.

    Args:
        minutes: How long it may take, about.
        seed: Of every draw.
        kinds: Which kinds of trials; all where it is empty.
    """
    chosen = {name: KINDS[name] for name in kinds or KINDS}
    whole = sum(share for _, share in chosen.values())
    found: list[tuple[Counts, float]] = []
    for name, (campaign, share) in chosen.items():
        seconds = 60 * minutes * share / whole
        note(f"{name}: about {seconds:.0f} s …")
        started = time.monotonic()
        with TemporaryDirectory(prefix="casewright-soak-") as folder:
            counts = campaign(seconds, seed, Path(folder))
        found.append((counts, time.monotonic() - started))
    wrong = [line for counts, _ in found for line in counts.wrong]
    skipped = [f"{c.name}: not tried, {c.skipped}." for c, _ in found if c.skipped]
    return Report(
        bench="soak",
        settings={"minutes": minutes, "seed": seed, "kinds": list(chosen)},
        figures={
            "tried": float(sum(counts.tried for counts, _ in found)),
            "lost": float(sum(counts.lost for counts, _ in found)),
            "wrong": float(len(wrong)),
        },
        rows=[
            {
                "trials": counts.name,
                "tried": counts.tried,
                "sound": counts.sound,
                "told": counts.told,
                "lost": counts.lost,
                "wrong": len(counts.wrong),
                "seconds": round(seconds),
            }
            for counts, seconds in found
        ],
        notes=[
            "sound: all answers were as before. told: an error of ours said what is wrong. lost: "
            "what was acknowledged and is gone without a word. wrong: anything else.",
            *skipped,
            *wrong[:NAMED],
        ],
    )
