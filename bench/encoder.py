"""Speed and retrieval of the packaged encoder, in float32 and with integer weights."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from casewright.bench.legal.data import find_sets as find_legal_sets
from casewright.bench.legal.retrieval import PAPERS_BEST, Trial
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.sets import FeedbackSet
from casewright.stores.encoders.bert import fitting_bits
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.progress import progress_bar

#: Cases that are retrieved for recall and nDCG.
K = 10
#: Runs over the texts of which the median is printed.
RUNS = 3
NOTES = (
    "F1: mean over the k of CBR-RAG's table, by the paper's best weighting. Recall and nDCG: of "
    f"the first {K} cases, over all questions of the set. points: int8 less fp32, times 100.",
    "texts a second: questions of the sets, in batches of similar length, by one process; the "
    f"median of {RUNS} runs after one that is not timed. Integer weights have 8 bits where the "
    "processor has VNNI, and 7 elsewhere.",
)


def measure_encoder(
    data: Path | None, *, only: str | None = None, limit: int | None = None, texts: int = 512
) -> Report:
    """Embed the same texts by both, and search the same cases.

    Args:
        data: A folder with the sets of ``bench legal`` and ``bench feedback``; the shipped legal
            cases, and code, without it.
        only: The name of the one set that is searched.
        limit: At most so many questions of each set.
        texts: Questions that are embedded to measure the speed.

    Raises:
        InputError: There is no such set.
        DependencyError: A set of code is wanted, and what splits code is not installed.
    """
    encoders = {"fp32": MiniLMEncoder(), "int8": MiniLMEncoder(fitting_bits())}
    sets = list(_sets(data, only, limit))
    rows: list[dict[str, Any]] = []
    with progress_bar("Searching the sets", len(sets) * len(encoders), show=None) as advance:
        for found in sets:
            scores: dict[str, dict[str, float]] = {}
            for name, encoder in encoders.items():
                for measure, score in _retrieval(found, encoder):
                    scores.setdefault(measure, {})[name] = score
                advance(1)
            rows += [
                {
                    "table": "retrieval",
                    "set": found.name,
                    "measure": measure,
                    **by_encoder,
                    "points": 100 * (by_encoder["int8"] - by_encoder["fp32"]),
                }
                for measure, by_encoder in scores.items()
            ]
    asked = [question.text for found in sets for question in found.questions][:texts]
    for encoder in encoders.values():
        speed = {"encoder": encoder.name, "texts a second": _speed(encoder, asked)}
        rows.append({"table": "speed", **speed})
    differences = [row["points"] for row in rows if row["table"] == "retrieval"]
    return Report(
        "encoder",
        {"data": str(data), "set": only, "limit": limit, "texts": len(asked)},
        {"worst_points_by_int8": min(differences)},
        rows,
        NOTES,
        titles={"retrieval": "Retrieval by the encoder", "speed": "Speed of the encoder"},
    )


def _sets(data: Path | None, only: str | None, limit: int | None) -> Iterator[Any]:
    problems = []
    for find in (find_legal_sets, find_sets):
        try:
            yield from find(data, only, limit)
        except InputError as error:
            # A folder may hold the sets of one of them alone.
            problems.append(error)
    if len(problems) == 2:
        raise problems[-1]


def _retrieval(found: Any, encoder: MiniLMEncoder) -> Iterator[tuple[str, float]]:
    """Yield each measure and its mean over the questions of a set."""
    if not isinstance(found, FeedbackSet):
        with Trial(found, encoder) as trial:
            yield "F1", float(trial.scores(PAPERS_BEST).mean())
        return
    recalls, gains = [], []
    discounts = 1 / np.log2(np.arange(2, K + 2))
    with found.store(encoder) as store:
        for question in found.questions:
            hits = store.search(question.text, K)
            right = np.array([hit.case.id in question.relevant for hit in hits] + [False] * K)[:K]
            recalls.append(right.sum() / len(question.relevant))
            gains.append(right @ discounts / discounts[: len(question.relevant)].sum())
    yield f"recall@{K}", float(np.mean(recalls))
    yield f"nDCG@{K}", float(np.mean(gains))


def _speed(encoder: MiniLMEncoder, texts: Sequence[str]) -> float:
    """Return how many texts a second are embedded."""
    encoder.embed(texts)
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        encoder.embed(texts)
        seconds.append(time.perf_counter() - started)
    return len(texts) / median(seconds)
