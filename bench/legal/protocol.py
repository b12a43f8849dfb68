"""CBR-RAG's retrieval protocol (Wiratunga et al. 2024, section 6): F1@k of two parent cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.harness import panels
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
#: The source of the paper's figures.
SOURCE = "CBR-RAG, section 6, F1@k"
#: F1@k of one set by the ranking's name, arrays (len(KS),).
Rows = dict[str, Scores]
#: F1 at every k in the rows of a heat map, by label.
Panel = dict[str, Sequence[float]]
#: Positions of a set's questions: the development half and the test half.
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
    paper_panels: dict[str, Panel] = {}
    for name, table in published("cbr_rag")["f1_at_k"].items():
        panel: Panel = {label_of(w): row for w, row in zip(WEIGHTINGS, table, strict=True)}
        paper_panels[f"{SOURCE}: {name} on ALQA"] = panel
        rows |= {f"paper, {name}: {label}": np.array(scores) for label, scores in panel.items()}
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
        draw=lambda axes: _draw(axes, [_panels(groups, sizes), paper_panels]),
    )


def _on_all_questions(trials: Sequence[Trial]) -> dict[str, Rows]:
    """Return the scores on all questions of every set, and the controls."""
    groups: dict[str, Rows] = {}
    for trial in trials:
        rows = {label_of(w): trial.scores(w).mean(axis=0) for w in WEIGHTINGS}
        rows[SHUFFLED] = shuffled_f1_at_k(partial(trial.ranks, PAPERS_BEST), len(trial.parents))
        rows[CHANCE] = random_f1_at_k(len(trial))
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


def _panels(groups: Mapping[str, Rows], sizes: Mapping[str, Mapping[str, int]]) -> dict[str, Panel]:
    result: dict[str, Panel] = {}
    for name, rows in groups.items():
        title = f"{name}: mean of the sets"
        if size := sizes.get(name):
            title = f"{name}: {size['cases']:,} cases, {size['questions']} questions"
        result[title] = {label_of(w): list(rows[label_of(w)]) for w in WEIGHTINGS}
    return result


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


def _draw(axes: Any, columns: Sequence[Mapping[str, Panel]]) -> None:
    """Draw heat maps of F1@k by weighting and k: ours on the left, the paper's on the right.

    The maps of a column share a colour scale.
    """
    figure, height = axes.figure, max(map(len, columns))
    grid = panels(axes, len(columns), height, (7.4, 2.9))
    for across, column in enumerate(columns):
        top = max(max(scores) for panel in column.values() for scores in panel.values())
        for down, (title, panel) in enumerate(column.items()):
            _draw_panel(grid[down][across], title, panel, top)
        for down in range(len(column), height):
            grid[down][across].set_axis_off()
    figure.suptitle("F1@k, two parent cases a question: weights of question, support, entities")


def _draw_panel(axes: Any, title: str, panel: Panel, top: float) -> None:
    values = list(panel.values())
    axes.imshow(values, cmap="viridis", vmin=0, vmax=top, aspect="auto")
    axes.set_xticks(range(len(KS)), [str(k) for k in KS], fontsize=9)
    axes.set_yticks(range(len(values)), list(panel), fontsize=9)
    axes.set_xlabel("k", fontsize=9)
    axes.set_title(title, fontsize=10)
    style = {"ha": "center", "va": "center", "fontsize": 8}
    for row, scores in enumerate(values):
        for column, score in enumerate(scores):
            # Light cells need dark digits.
            colour = "black" if score > 0.6 * top else "white"
            axes.text(column, row, f"{score:.3f}", color=colour, **style)
