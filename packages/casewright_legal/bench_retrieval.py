"""Measures F1@k by CBR-RAG's protocol (section 6): each question has two relevant cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.harness import finish
from casewright.bench.report import Report
from casewright.stores import Encoder
from casewright_legal.bench_sets import find_sets
from casewright_legal.bench_weightings import (
    KS,
    PAPERS_BEST,
    SHUFFLE_COUNT,
    WEIGHTINGS,
    RetrievalTrial,
    Scores,
    Weighting,
    best_weighting,
    blend,
    label_of,
    paired_difference,
    random_f1_at_k,
    shuffled_f1_at_k,
)
from casewright_legal.cases import QA_COMPONENTS
from casewright_legal.published import published_table

#: The name of the means over the sets. Each set has the same weight.
ALL = "all sets"
SHUFFLED, CHANCE = "labels shuffled", "random order, expected"
#: The name of the row with the mean cosines of a question and its k-th nearest case.
KTH_COSINE = "cosine of the k-th case"
#: The percentiles of these cosines; each has a row.
PERCENTILES = (10, 90)
#: The paper's encoders.
ENCODERS = ("BERT", "LegalBERT", "AnglEBERT")
#: The rows of a set by their names: F1@k or cosines, as arrays (len(KS),).
Rows = dict[str, Scores]


def measure_legal(
    data: Path | None, encoder: Encoder, *, only: str | None = None, limit: int | None = None
) -> Report:
    """Measure F1@k with the paper's six weightings, and with the best weighting of a grid.

    The best weighting is selected on one half of each set's questions. It is tested on the other.
    """
    sets = find_sets(data, only, limit)
    with ExitStack() as stack:
        trials = [stack.enter_context(RetrievalTrial(qa_set, encoder)) for qa_set in sets]
        rows_by_set = _rows_on_all_questions(trials)
        test_rows_by_set, best, figures = _grid_search(trials)
        sizes = {trial.data.name: trial.size() for trial in trials}
    rows = {**_flat_rows(rows_by_set), **_flat_rows(test_rows_by_set, " (test half)")}
    # The last rows are the means over the sets, or the rows of the only set.
    mean_rows = list(rows_by_set.values())[-1]
    means_over_k = {name: float(row.mean()) for name, row in mean_rows.items()}
    paper_f1, chance_f1 = means_over_k[label_of(PAPERS_BEST)], means_over_k[CHANCE]
    figures = {
        "f1_papers_best_weighting": paper_f1,
        "f1_labels_shuffled": means_over_k[SHUFFLED],
        "f1_random_order_expected": chance_f1,
        "ratio_papers_best_weighting_over_random_order": paper_f1 / chance_f1,
        **figures,
    }
    for name in ENCODERS:
        pairs = zip(WEIGHTINGS, published_table("f1_at_k")[name], strict=True)
        rows |= {f"paper, {name}: {label_of(w)}": np.array(scores) for w, scores in pairs}
    table: list[dict[str, Any]] = []
    for name, scores in rows.items():
        cells = {f"k{k}": float(score) for k, score in zip(KS, scores, strict=True)}
        table.append({"ranking": name, **cells, "mean": float(np.mean(scores))})
    settings = {"sets": sizes, "encoder": encoder.name, "best_here": list(best)}
    draw = partial(_draw, ours=mean_rows, all_rows=rows)
    return Report("legal", settings, figures, table, _notes(encoder), draw)


def _rows_on_all_questions(trials: Sequence[RetrievalTrial]) -> dict[str, Rows]:
    """Return each set's rows, and the sets' means: six weightings, two controls, and cosines."""
    rows_by_set: dict[str, Rows] = {}
    for trial in trials:
        rows = {label_of(w): trial.scores(w).mean(axis=0) for w in WEIGHTINGS}
        rows[SHUFFLED] = shuffled_f1_at_k(partial(trial.ranks, PAPERS_BEST), len(trial.parents))
        rows[CHANCE] = random_f1_at_k(len(trial))
        ascending = np.sort(blend(trial.cosines(), PAPERS_BEST), axis=1)
        kth_cosines = ascending[:, [-min(k, len(trial)) for k in KS]]
        rows[KTH_COSINE] = kth_cosines.mean(axis=0)
        for percent in PERCENTILES:
            rows[f"{KTH_COSINE}, {percent} %"] = np.percentile(kth_cosines, percent, axis=0)
        rows_by_set[trial.data.name] = rows
    return _with_mean(rows_by_set)


def _grid_search(
    trials: Sequence[RetrievalTrial],
) -> tuple[dict[str, Rows], Weighting, dict[str, float]]:
    """Return the test halves' rows, the best weighting on the development halves, and figures."""
    halves = [trial.data.halves() for trial in trials]
    trial_data = list(zip(trials, [trial.cosines() for trial in trials], halves, strict=True))
    best, development_f1 = best_weighting(
        [
            (cosines[:, development], trial.order, trial.parents[development])
            for trial, cosines, (development, _) in trial_data
        ]
    )
    rows_by_set: dict[str, Rows] = {}
    best_f1s, papers_f1s, agreements = [], [], []
    for trial, cosines, (_, test) in trial_data:
        rows = {label_of(w): trial.scores(w)[test].mean(axis=0) for w in WEIGHTINGS}
        rows[f"best {label_of(best)}"] = trial.scores(best)[test].mean(axis=0)
        rows_by_set[trial.data.name] = rows
        best_f1s.append(trial.scores(best)[test].mean(axis=1))
        papers_f1s.append(trial.scores(PAPERS_BEST)[test].mean(axis=1))
        agreements += [trial.agreement(weights, cosines) for weights in (*WEIGHTINGS, best)]
    best_f1, papers_f1 = (
        float(np.mean([f1.mean() for f1 in f1s])) for f1s in (best_f1s, papers_f1s)
    )
    difference = paired_difference(best_f1s, papers_f1s)
    scores = [trial.scores(PAPERS_BEST) for trial in trials]
    parts = [(f1[dev], f1[test]) for f1, (dev, test) in zip(scores, halves, strict=True)]
    development_at_k = np.mean([part.mean(axis=0) for part, _ in parts], axis=0)
    test_at_k = np.mean([part.mean(axis=0) for _, part in parts], axis=0)
    best_index = int(np.argmax(development_at_k))
    figures = {
        **{f"best_here_weight_of_{n}": w for n, w in zip(QA_COMPONENTS, best, strict=True)},
        "f1_development_half_best_here": development_f1,
        "f1_test_half_best_here": best_f1,
        "f1_test_half_papers_best_weighting": papers_f1,
        "f1_test_half_difference": difference.mean,
        "f1_test_half_difference_low_95": difference.low,
        "f1_test_half_difference_high_95": difference.high,
        "k_of_best_f1_development_half": float(KS[best_index]),
        "f1_test_half_at_that_k": float(test_at_k[best_index]),
        "f1_test_half_at_papers_k_3": float(test_at_k[KS.index(3)]),
        "share_of_rankings_alike_by_store_and_by_cosines": float(np.mean(agreements)),
    }
    if papers_f1:
        figures["ratio_test_half_best_here_over_papers_best_weighting"] = best_f1 / papers_f1
    return _with_mean(rows_by_set), best, figures


def _with_mean(rows_by_set: dict[str, Rows]) -> dict[str, Rows]:
    """Return the rows by set; for several sets, also the means over the sets."""
    if len(rows_by_set) < 2:
        return rows_by_set
    sets = list(rows_by_set.values())
    means = {label: np.mean([rows[label] for rows in sets], axis=0) for label in sets[0]}
    return {**rows_by_set, ALL: means}


def _flat_rows(rows_by_set: Mapping[str, Rows], suffix: str = "") -> Rows:
    return {
        f"{set_name}{suffix}: {label}": row
        for set_name, rows in rows_by_set.items()
        for label, row in rows.items()
    }


def _notes(encoder: Encoder) -> list[str]:
    return [
        "Weights are those of question, support, entities. F1@k = 2h/(k+2) if h of the two parents "
        "are among the first k cases: at most 0.667 at k=1, 0.103 at k=37. Figures are means over "
        f"the nine k and over the sets, with equal weights. Encoder: {encoder.name}.",
        f"labels shuffled: each question gets another question's parents, {SHUFFLE_COUNT} times, "
        f"with the paper's best weighting ({label_of(PAPERS_BEST)}). best: the weighting with the "
        "highest F1 on one half of each set's questions, scored on the other half; 95 % intervals "
        "by a paired bootstrap.",
        "paper: as published, for other encoders and data (2,084 ALQA cases, 32 questions): "
        "compare the order of the weightings, not the values.",
    ]


def _draw(axes: Any, ours: Rows, all_rows: Rows) -> None:
    """Draw our F1@k with the paper's six weightings, and the best curve in the paper."""
    best = f"paper, {ENCODERS[-1]}: {label_of(PAPERS_BEST)}"
    lines = {label_of(w): ours[label_of(w)] for w in WEIGHTINGS} | {best: all_rows[best]}
    for name, scores in lines.items():
        axes.plot(KS, scores, marker=".", linestyle="--" if name == best else "-", label=name)
    finish(axes, "Weights of question, support, entities", xlabel="k", ylabel="F1@k")
