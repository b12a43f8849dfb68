"""The soak test: trials of several kinds; each kind gets a share of the time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from casewright.bench.report import Report
from casewright.stores.progress import note
from casewright_soak.clients import kills_with_clients
from casewright_soak.damage import damaged_caches, damaged_stores, full_disks
from casewright_soak.files import damaged_texts, damaged_threads
from casewright_soak.fuzz import fuzz_parsers
from casewright_soak.kills import kills_of_ingest, kills_of_writes, random_kills
from casewright_soak.service import kills_of_service
from casewright_soak.training import kills_of_training
from casewright_soak.trials import MAX_DESCRIBED, PRELOADED, Bounds, Counts


class Kind(NamedTuple):
    """A kind of trials."""

    run: Callable[[Bounds, Path], Counts]  # runs trials in a folder within the bounds
    share: float  # the kind's share of the time, relative to the other kinds' shares
    figure: str  # the name of the figure that counts the kind's trials
    modules: Sequence[str] = ()  # modules that child processes import in addition to ``PRELOADED``


NOTE = (
    "Trials by outcome. sound: all answers were right. told: a CasewrightError named the fault. "
    "lost: acknowledged data is gone without an error. wrong: any failure, also a loss."
)
_TRAINING_MODULES = ("casewright_soak.training", "peft", "trl.trainer.sft_trainer")
#: The kinds by their names on the command line.
KINDS: Mapping[str, Kind] = {
    "random": Kind(random_kills, 0.1, "kills"),
    "writes": Kind(kills_of_writes, 0.1, "kills"),
    "ingest": Kind(kills_of_ingest, 0.1, "kills"),
    "service": Kind(kills_of_service, 0.1, "kills", ["casewright_soak.service"]),
    "training": Kind(kills_of_training, 0.1, "kills", _TRAINING_MODULES),
    "stores": Kind(damaged_stores, 0.2, "damages"),
    "caches": Kind(damaged_caches, 0.05, "damages"),
    "texts": Kind(damaged_texts, 0.02, "damages"),
    "threads": Kind(damaged_threads, 0.05, "damages", ["casewright_soak.files"]),
    "disks": Kind(full_disks, 0.05, "full disks"),
    "clients": Kind(kills_with_clients, 0.15, "requests"),
    "input": Kind(fuzz_parsers, 0.05, "inputs"),
}


def soak(
    minutes: float, seed: int = 0, kinds: Sequence[str] = (), max_trials: int | None = None
) -> Report:
    """Run trials of the given kinds, by default of all kinds, for about ``minutes``.

    ``Bounds`` explains ``seed`` and ``max_trials``. The report's notes describe the failures.
    """
    selected = {name: KINDS[name] for name in kinds or KINDS}
    total_share = sum(kind.share for kind in selected.values())
    PRELOADED.extend(name for kind in selected.values() for name in kind.modules)
    results: list[Counts] = []
    rows: list[dict[str, Any]] = []
    tried_by_figure = Counter[str]()
    for name, kind in selected.items():
        bounds = Bounds(60 * minutes * kind.share / total_share, seed, max_trials)
        note(f"{name}: about {bounds.seconds:.0f} s …")
        started = time.monotonic()
        with TemporaryDirectory(prefix="casewright-soak-") as folder:
            counts = kind.run(bounds, Path(folder))
        results.append(counts)
        tried_by_figure[kind.figure] += counts.tried
        row = {"trials": counts.name, **asdict(counts), "wrong": len(counts.wrong)}
        del row["name"], row["skipped"]
        rows.append({**row, "seconds": round(time.monotonic() - started)})
    wrong = [line for counts in results for line in counts.wrong]
    settings = {"minutes": minutes, "seed": seed, "kinds": list(selected), "most": max_trials}
    figures = {figure: float(count) for figure, count in tried_by_figure.items()}
    figures |= {"lost": float(sum(counts.lost for counts in results)), "wrong": float(len(wrong))}
    skipped = [f"{c.name}: not tried, {c.skipped}." for c in results if c.skipped]
    return Report("soak", settings, figures, rows, [NOTE, *skipped, *wrong[:MAX_DESCRIBED]])
