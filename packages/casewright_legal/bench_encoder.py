"""Compares the packaged encoder with another encoder, by default with its integer weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from casewright.bench.harness import timings, tracked
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.judge_sets.find import find_sets as find_feedback_sets
from casewright.finetune.judge_sets.sets import FeedbackSet
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.encoders.sources import named_encoder
from casewright_legal.bench_sets import find_sets as find_legal_sets
from casewright_legal.bench_weightings import PAPERS_BEST, RetrievalTrial, Scores, paired_difference

#: The k of recall@k and nDCG@k, and the number of timed runs over the texts.
K, RUN_COUNT = 10, 3
NOTES = (
    "F1 is the mean over the k of CBR-RAG's table, with the paper's best weighting. Recall and "
    f"nDCG of the first {K} cases are means over the set's questions. points: the second encoder's "
    "figure minus the float32 encoder's, times 100, with a 95 % interval (paired bootstrap over "
    "the questions). texts a second: measured with the sets' questions, in batches of similar "
    f"length, in one process; the median of {RUN_COUNT} runs after a run to warm up.",
    "Integer weights have 8 bits on processors with VNNI, and 7 bits elsewhere.",
)


def measure_encoder(
    data: Path | None,
    *,
    against: str | None = None,
    only: str | None = None,
    limit: int | None = None,
    texts: int = 512,
) -> Report:
    """Search the same cases with two encoders, and time both on the same texts.

    ``data`` is a folder with sets of ``bench legal`` or ``bench feedback``; ``None`` means the
    shipped legal cases and the shipped code. ``against`` is a name for ``named_encoder``, by
    default the name of the integer weights. At most ``texts`` texts are timed.

    Raises:
        InputError: The set or the encoder does not exist.
        DependencyError: A package that splits code, or that the encoder needs, is not installed.
    """
    other_name = "int8" if against is None else against
    encoders = {"fp32": default_encoder(), other_name: named_encoder(against or "minilm-int8")}
    sets = list(_sets(data, only, limit))
    rows: list[dict[str, Any]] = []
    for data_set in tracked("Searching the sets", sets):
        scores = {name: dict(_retrieval(data_set, encoder)) for name, encoder in encoders.items()}
        for measure, base in scores["fp32"].items():
            values = scores[other_name][measure]
            points, low, high = (100 * number for number in paired_difference([values], [base]))
            row = {"table": "retrieval", "set": data_set.name, "measure": measure}
            row |= {"fp32": float(base.mean()), other_name: float(values.mean())}
            rows.append({**row, "points": points, "points from": low, "points to": high})
    differences = [row["points"] for row in rows]
    questions = [question.text for data_set in sets for question in data_set.questions][:texts]
    for encoder in encoders.values():
        embed = partial(encoder.encoder.embed, questions)
        embed()
        milliseconds = median(timings(embed, RUN_COUNT))
        speed = 1000 * len(questions) / milliseconds
        rows.append({"table": "speed", "encoder": encoder.name, "texts a second": speed})
    settings = {"data": str(data), "set": only, "limit": limit, "texts": len(questions)}
    figures = {f"worst_points_by_{other_name}": min(differences)}
    titles = {"retrieval": "Retrieval by the encoder", "speed": "Speed of the encoder"}
    return Report("encoder", settings, figures, rows, NOTES, titles=titles)


def _sets(data: Path | None, only: str | None, limit: int | None) -> Iterator[Any]:
    errors = []
    for find in (find_legal_sets, find_feedback_sets):
        try:
            yield from find(data, only, limit)
        except InputError as error:
            # A folder may contain the sets of only one of the two benchmarks.
            errors.append(error)
    if len(errors) == 2:
        raise InputError(" ".join(map(str, errors)))


def _retrieval(data_set: Any, encoder: CachedEncoder) -> Iterator[tuple[str, Scores]]:
    """Yield each measure's name and its values for the questions of a set."""
    if not isinstance(data_set, FeedbackSet):
        with RetrievalTrial(data_set, encoder) as trial:
            yield "F1", trial.scores(PAPERS_BEST).mean(axis=1)
        return
    recalls, ndcgs = [], []
    discounts = 1 / np.log2(np.arange(2, K + 2))
    with data_set.store(encoder) as store:
        for question in data_set.questions:
            hits = store.search(question.text, K)
            is_relevant = np.array([hit.case.id in question.relevant for hit in hits])
            recalls.append(is_relevant.sum() / len(question.relevant))
            ideal = discounts[: len(question.relevant)].sum()
            ndcgs.append(is_relevant @ discounts[: len(hits)] / ideal)
    yield f"recall@{K}", np.array(recalls)
    yield f"nDCG@{K}", np.array(ndcgs)
