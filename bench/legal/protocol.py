"""CBR-RAG's retrieval protocol (Wiratunga et al. 2024, section 6): F1@k of two parent cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.harness import finish
from casewright.bench.legal.data import find_sets
from casewright.bench.legal.retrieval import (
    KS,
    PAPERS_BEST,
    SHUFFLES,
    WEIGHTINGS,
    Scores,
    Trial,
    Weighting,
    best_weighting,
    blend,
    label_of,
    paired_difference,
    random_f1_at_k,
    shuffled_f1_at_k,
)
from casewright.bench.report import Report, published
from casewright.stores import Encoder

#: The mean over the sets, with equal weights.
ALL = "all sets"
SHUFFLED, CHANCE = "labels shuffled", "random order, expected"
#: Weighted cosine of a question and its k-th case, by the paper's best weighting: mean, deciles.
COSINES, DECILES = "cosine of the k-th case", (10, 90)
#: The paper's encoders.
ENCODERS = ("BERT", "LegalBERT", "AnglEBERT")
#: Rows of one set: a ranking's name, and its F1@k, array (len(KS),).
Rows = dict[str, Scores]
#: Numbers of a set's questions: the development half and the test half.
Halves = tuple[list[int], list[int]]


def measure_legal(
    data: Path | None, encoder: Encoder, *, only: str | None = None, limit: int | None = None
) -> Report:
    """Return F1@k with the paper's six weightings, and with the best weighting of a grid.

    One half of each set's questions selects the best weighting, the other half scores it.
    """
    sets = find_sets(data, only, limit)
    with ExitStack() as stack:
        trials = [stack.enter_context(Trial(data, encoder)) for data in sets]
        groups = _on_all_questions(trials)
        test_groups, best, figures = _searched(trials)
        sizes = {trial.data.name: trial.size() for trial in trials}
    rows = {**_flat(groups), **_flat(test_groups, " (test half)")}
    mean_rows = {name: float(row.mean()) for name, row in list(groups.values())[-1].items()}
    papers, chance = mean_rows[label_of(PAPERS_BEST)], mean_rows[CHANCE]
    figures = {
        "f1_papers_best_weighting": papers,
        "f1_labels_shuffled": mean_rows[SHUFFLED],
        "f1_random_order_expected": chance,
        "ratio_papers_best_weighting_over_random_order": papers / chance,
        **figures,
    }
    for name in ENCODERS:
        table = zip(WEIGHTINGS, published("cbr_rag")["f1_at_k"][name], strict=True)
        rows |= {f"paper, {name}: {label_of(w)}": np.array(scores) for w, scores in table}
    return Report(
        bench="legal",
        settings={"sets": sizes, "encoder": encoder.name, "best_here": list(best)},
        figures=figures,
        rows=[
            {
                "ranking": name,
                **{f"k{k}": float(score) for k, score in zip(KS, scores, strict=True)},
                "mean": float(np.mean(scores)),
            }
            for name, scores in rows.items()
        ],
        notes=_notes(encoder),
        draw=lambda axes: _draw(axes, list(groups.values())[-1], rows),
    )


def _on_all_questions(trials: Sequence[Trial]) -> dict[str, Rows]:
    """Return the scores on all questions of every set, and the controls."""
    groups: dict[str, Rows] = {}
    for trial in trials:
        rows = {label_of(w): trial.scores(w).mean(axis=0) for w in WEIGHTINGS}
        rows[SHUFFLED] = shuffled_f1_at_k(partial(trial.ranks, PAPERS_BEST), len(trial.parents))
        rows[CHANCE] = random_f1_at_k(len(trial))
        ranked = np.sort(blend(trial.cosines(), PAPERS_BEST), axis=1)
        near = ranked[:, [-min(k, len(trial)) for k in KS]]
        rows[COSINES] = near.mean(axis=0)
        for share in DECILES:
            rows[f"{COSINES}, {share} %"] = np.percentile(near, share, axis=0)
        groups[trial.data.name] = rows
    return _with_mean(groups)


def _searched(trials: Sequence[Trial]) -> tuple[dict[str, Rows], Weighting, dict[str, float]]:
    """Return the best weighting on the development halves, and its scores on the test halves."""
    halves = [trial.data.halves() for trial in trials]
    cosines = [trial.cosines() for trial in trials]
    best, on_development = best_weighting(
        [
            (part[:, half], trial.order, trial.parents[half])
            for trial, part, (half, _) in zip(trials, cosines, halves, strict=True)
        ]
    )
    groups: dict[str, Rows] = {}
    ours, papers, same = [], [], []
    for trial, part, (_, half) in zip(trials, cosines, halves, strict=True):
        rows = {label_of(w): trial.scores(w)[half].mean(axis=0) for w in WEIGHTINGS}
        rows[f"best {label_of(best)}"] = trial.scores(best)[half].mean(axis=0)
        groups[trial.data.name] = rows
        ours.append(trial.scores(best)[half].mean(axis=1))
        papers.append(trial.scores(PAPERS_BEST)[half].mean(axis=1))
        same += [trial.agreement(weights, part) for weights in (*WEIGHTINGS, best)]
    best_f1, base = (float(np.mean([part.mean() for part in sets])) for sets in (ours, papers))
    difference = paired_difference(ours, papers)
    figures = {
        "best_here_weight_of_question": best[0],
        "best_here_weight_of_support": best[1],
        "best_here_weight_of_entities": best[2],
        "f1_development_half_best_here": on_development,
        "f1_test_half_best_here": best_f1,
        "f1_test_half_papers_best_weighting": base,
        "f1_test_half_difference": difference.mean,
        "f1_test_half_difference_low_95": difference.low,
        "f1_test_half_difference_high_95": difference.high,
        **_chosen_k(trials, halves),
        "share_of_rankings_alike_by_store_and_by_cosines": float(np.mean(same)),
    }
    if base:
        figures["ratio_test_half_best_here_over_papers_best_weighting"] = best_f1 / base
    return _with_mean(groups), best, figures


def _chosen_k(trials: Sequence[Trial], halves: Sequence[Halves]) -> dict[str, float]:
    """Return the best k on the development halves, and its F1 on the test halves."""
    scores = [trial.scores(PAPERS_BEST) for trial in trials]
    development, test = (
        np.mean(
            [s[pair[part]].mean(axis=0) for s, pair in zip(scores, halves, strict=True)], axis=0
        )
        for part in (0, 1)
    )
    best = int(np.argmax(development))
    return {
        "k_of_best_f1_development_half": float(KS[best]),
        "f1_test_half_at_that_k": float(test[best]),
        "f1_test_half_at_papers_k_3": float(test[KS.index(3)]),
    }


def _with_mean(groups: dict[str, Rows]) -> dict[str, Rows]:
    """Return the scores with the mean of several sets added."""
    if len(groups) < 2:
        return groups
    labels = next(iter(groups.values()))
    mean = {label: np.mean([rows[label] for rows in groups.values()], axis=0) for label in labels}
    return {**groups, ALL: mean}


def _flat(groups: Mapping[str, Rows], part: str = "") -> Rows:
    return {
        f"{name}{part}: {label}": scores
        for name, rows in groups.items()
        for label, scores in rows.items()
    }


def _difference(name: str, ours: Sequence[Scores], theirs: Sequence[Scores]) -> dict[str, float]:
    mean, low, high = paired_difference(ours, theirs)
    return {name: mean, f"{name}_low_95": low, f"{name}_high_95": high}


def _notes(encoder: Encoder) -> list[str]:
    return [
        "Weights are of question, support, entities. F1@k = 2h/(k+2), where h of the two parents "
        "are among the first k cases: at most 0.667 at k=1, 0.103 at k=37. Figures are means over "
        f"the nine k and over the sets, with equal weights. Encoder: {encoder.name}.",
        f"labels shuffled: each question gets another's parents, {SHUFFLES} times, with the "
        f"paper's best weighting ({label_of(PAPERS_BEST)}). One half of each set's questions "
        "selects the best weighting here, and the other half scores it; 95 % intervals are of a "
        "paired bootstrap.",
        "paper: as published, for other encoders and data (2,084 ALQA cases, 32 questions): "
        "compare the order of the weightings, not the heights.",
    ]


def _draw(axes: Any, ours: Rows, rows: Rows) -> None:
    """Draw F1@k of the paper's six weightings on the last set or the mean, and the paper's best."""
    best = f"paper, {ENCODERS[-1]}: {label_of(PAPERS_BEST)}"
    lines = {label_of(w): ours[label_of(w)] for w in WEIGHTINGS} | {best: rows[best]}
    for name, scores in lines.items():
        axes.plot(KS, scores, marker=".", linestyle="--" if name == best else "-", label=name)
    finish(axes, "Weights of question, support, entities", xlabel="k", ylabel="F1@k")
