"""Speed and retrieval quality of the packaged encoder, in float32 and with integer weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from casewright.bench.harness import timings, tracked
from casewright.bench.legal.data import find_sets as find_legal_sets
from casewright.bench.legal.retrieval import PAPERS_BEST, Trial
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.sets import FeedbackSet
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.onnx_graph import fitting_bits

#: The k of recall and nDCG; timed runs over the texts.
K, RUNS = 10, 3
NOTES = (
    "F1: mean over the k of CBR-RAG's table, with the paper's best weighting. Recall and nDCG: of "
    f"the first {K} cases, over all questions of the set. points: int8 less fp32, times 100.",
    "texts a second: questions of the sets in batches of similar length, in one process; median "
    f"of {RUNS} runs after an untimed run. Integer weights have 8 bits on a processor with VNNI, "
    "and 7 on others.",
)


def measure_encoder(
    data: Path | None, *, only: str | None = None, limit: int | None = None, texts: int = 512
) -> Report:
    """Embed the same texts with both forms of the encoder, and search the same cases.

    Args:
        data: A folder with the sets of ``bench legal`` and ``bench feedback``; ``None`` takes the
            shipped legal cases, and code.

    Raises:
        InputError: The set does not exist.
        DependencyError: A package that splits code is not installed.
    """
    encoders = {"fp32": MiniLMEncoder(), "int8": MiniLMEncoder(fitting_bits())}
    sets = list(_sets(data, only, limit))
    rows: list[dict[str, Any]] = []
    for data_set in tracked("Searching the sets", sets):
        scores = {name: dict(_retrieval(data_set, encoder)) for name, encoder in encoders.items()}
        for measure in scores["fp32"]:
            both = {name: values[measure] for name, values in scores.items()}
            points = 100 * (both["int8"] - both["fp32"])
            head = {"table": "retrieval", "set": data_set.name, "measure": measure}
            rows.append({**head, **both, "points": points})
    differences = [row["points"] for row in rows]
    questions = [question.text for data_set in sets for question in data_set.questions][:texts]
    for encoder in encoders.values():
        embed = partial(encoder.embed, questions)
        embed()
        speed = len(questions) / (median(timings(embed, RUNS)) / 1000)
        rows.append({"table": "speed", "encoder": encoder.name, "texts a second": speed})
    return Report(
        "encoder",
        {"data": str(data), "set": only, "limit": limit, "texts": len(questions)},
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
            # A folder may hold the sets of one bench alone.
            problems.append(error)
    if len(problems) == 2:
        raise problems[-1]


def _retrieval(data_set: Any, encoder: MiniLMEncoder) -> Iterator[tuple[str, float]]:
    """Yield each measure and its mean over the questions of a set."""
    if not isinstance(data_set, FeedbackSet):
        with Trial(data_set, encoder) as trial:
            yield "F1", float(trial.scores(PAPERS_BEST).mean())
        return
    recalls, gains = [], []
    discounts = 1 / np.log2(np.arange(2, K + 2))
    with data_set.store(encoder) as store:
        for question in data_set.questions:
            hits = store.search(question.text, K)
            right = np.array([hit.case.id in question.relevant for hit in hits] + [False] * K)[:K]
            recalls.append(right.sum() / len(question.relevant))
            gains.append(right @ discounts / discounts[: len(question.relevant)].sum())
    yield f"recall@{K}", float(np.mean(recalls))
    yield f"nDCG@{K}", float(np.mean(gains))
