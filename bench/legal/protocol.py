"""CBR-RAG's retrieval protocol (Wiratunga et al. 2024, section 6): F1@k, two parents a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.legal.data import QaSet, find_sets
from casewright.bench.legal.retrieval import (
    KS,
    PAPERS_BEST,
    SHUFFLES,
    WEIGHTINGS,
    CuedEncoder,
    Scores,
    Trial,
    Weighting,
    best_weighting,
    label_of,
    paired_difference,
    random_f1_at_k,
    shuffled_f1_at_k,
)
from casewright.bench.published import published
from casewright.bench.report import Report
from casewright.stores import Encoder

#: The mean over the sets, each of them counting the same.
ALL = "all sets"
SHUFFLED, CHANCE = "labels shuffled", "random order, expected"
#: The name of the paper's figures beside ours.
SOURCE = "CBR-RAG, section 6, F1@k"
#: Rows of one set: a ranking's name, and its F1@k, array (len(KS),).
Rows = dict[str, Scores]
#: Rows of a heat map: the label and the F1 at every k of each.
Panel = dict[str, Sequence[float]]


def measure_legal(
    data: Path | None,
    encoder: Encoder,
    *,
    only: str | None = None,
    cue: str | None = None,
    limit: int | None = None,
) -> Report:
    """Measure F1@k under the paper's six weightings, and under the one that is best here.

    The best one is sought over a grid on half of each set's questions, and scored on the others.

    Args:
        data: See ``find_sets``.
        encoder: Of cases and questions.
        only: See ``find_sets``.
        cue: Also measured before queries, on half of the questions.
        limit: See ``find_sets``.
    """
    sets = find_sets(data, only, limit)
    with ExitStack() as stack:
        trials = [stack.enter_context(Trial(data, encoder)) for data in sets]
        whole = _whole(trials)
        tested, best, searched = _searched(trials)
        sizes = {trial.data.name: trial.size() for trial in trials}
    rows = {**_flat(whole), **_flat(tested, " (test half)")}
    figures = {**_whole_figures(whole), **searched}
    if cue is not None:
        cued, differences = _cued(sets, encoder, cue)
        rows |= cued
        figures |= differences
    panels: dict[str, Panel] = {}
    for name, table in published("cbr_rag")["f1_at_k"].items():
        panel: Panel = {label_of(w): row for w, row in zip(WEIGHTINGS, table, strict=True)}
        panels[f"{SOURCE}: {name} on ALQA"] = panel
        rows |= {f"paper, {name}: {label}": np.array(scores) for label, scores in panel.items()}
    return Report(
        bench="legal",
        settings={
            "sets": sizes,
            "encoder": encoder.name,
            "cue": cue,
            "best_here": list(best),
        },
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
        draw=lambda axes: _draw(axes, [_panels(whole, sizes), panels]),
    )


def _whole(trials: Sequence[Trial]) -> dict[str, Rows]:
    """Score all questions of every set, and the controls."""
    groups: dict[str, Rows] = {}
    for trial in trials:
        rows = {label_of(w): trial.scores(w).mean(axis=0) for w in WEIGHTINGS}
        rows[SHUFFLED] = shuffled_f1_at_k(partial(trial.ranks, PAPERS_BEST), len(trial.parents))
        rows[CHANCE] = random_f1_at_k(len(trial))
        groups[trial.data.name] = rows
    return _with_mean(groups)


def _searched(trials: Sequence[Trial]) -> tuple[dict[str, Rows], Weighting, dict[str, float]]:
    """Find the best weighting on the development halves, and score it on the test halves."""
    halves = [trial.data.halves() for trial in trials]
    cosines = [trial.cosines() for trial in trials]
    best, on_development = best_weighting(
        [
            (part[:, half], trial.order, trial.parents[half])
            for trial, part, (half, _) in zip(trials, cosines, halves, strict=True)
        ]
    )
    groups: dict[str, Rows] = {}
    ours, papers, alike = [], [], []
    for trial, part, (_, half) in zip(trials, cosines, halves, strict=True):
        rows = {label_of(w): trial.scores(w)[half].mean(axis=0) for w in WEIGHTINGS}
        rows[f"best {label_of(best)}"] = trial.scores(best)[half].mean(axis=0)
        groups[trial.data.name] = rows
        ours.append(trial.scores(best)[half].mean(axis=1))
        papers.append(trial.scores(PAPERS_BEST)[half].mean(axis=1))
        alike += [trial.agreement(weights, part) for weights in (*WEIGHTINGS, best)]
    own, other = (float(np.mean([part.mean() for part in sets])) for sets in (ours, papers))
    figures = {
        "best_here_weight_of_question": best[0],
        "best_here_weight_of_support": best[1],
        "best_here_weight_of_entities": best[2],
        "f1_development_half_best_here": on_development,
        "f1_test_half_best_here": own,
        "f1_test_half_papers_best_weighting": other,
        **_difference("f1_test_half_difference", ours, papers),
        "share_of_rankings_alike_by_store_and_by_cosines": float(np.mean(alike)),
    }
    if other:
        figures["ratio_test_half_best_here_over_papers_best_weighting"] = own / other
    return _with_mean(groups), best, figures


def _cued(sets: Sequence[QaSet], encoder: Encoder, cue: str) -> tuple[Rows, dict[str, float]]:
    """Score the development halves with a cue before queries, and without any; mean of the sets."""
    rows: Rows = {}
    scores: list[dict[Weighting, list[Scores]]] = []
    for name, text in (("with the cue", cue), ("without a cue", "")):
        by_weights: dict[Weighting, list[Scores]] = {weights: [] for weights in WEIGHTINGS}
        for data in sets:
            half, _ = data.halves()
            with Trial(data, CuedEncoder(encoder, text)) as trial:
                for weights, own in by_weights.items():
                    own.append(trial.scores(weights)[half])
        for weights, own in by_weights.items():
            mean = np.mean([part.mean(axis=0) for part in own], axis=0)
            rows[f"{name} (development half): {label_of(weights)}"] = mean
        scores.append({w: [part.mean(axis=1) for part in own] for w, own in by_weights.items()})
    with_cue, without = scores
    figures: dict[str, float] = {}
    for name, weights in (
        ("support_alone", WEIGHTINGS[1]),
        ("entities_alone", WEIGHTINGS[2]),
        ("papers_best_weighting", PAPERS_BEST),
    ):
        difference = (with_cue[weights], without[weights])
        figures |= _difference(f"f1_difference_by_the_cue_{name}", *difference)
    return rows, figures


def _with_mean(groups: dict[str, Rows]) -> dict[str, Rows]:
    """Add the mean of the sets, where there are several."""
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


def _whole_figures(whole: Mapping[str, Rows]) -> dict[str, float]:
    rows = list(whole.values())[-1]
    own, chance = float(rows[label_of(PAPERS_BEST)].mean()), float(rows[CHANCE].mean())
    return {
        "f1_papers_best_weighting": own,
        "f1_labels_shuffled": float(rows[SHUFFLED].mean()),
        "f1_random_order_expected": chance,
        "ratio_papers_best_weighting_over_random_order": own / chance,
    }


def _difference(name: str, ours: Sequence[Scores], theirs: Sequence[Scores]) -> dict[str, float]:
    mean, low, high = paired_difference(ours, theirs)
    return {name: mean, f"{name}_low_95": low, f"{name}_high_95": high}


def _panels(whole: Mapping[str, Rows], sizes: Mapping[str, Mapping[str, int]]) -> dict[str, Panel]:
    panels: dict[str, Panel] = {}
    for name, rows in whole.items():
        size = "mean of the sets"
        if own := sizes.get(name):
            size = f"{own['cases']:,} cases, {own['questions']} questions"
        panels[f"{name}: {size}"] = {label_of(w): list(rows[label_of(w)]) for w in WEIGHTINGS}
    return panels


def _notes(encoder: Encoder) -> list[str]:
    return [
        "Weights are of question, support, entities. F1@k = 2h/(k+2), where h of the two parents "
        "are among the first k cases: at most 0.667 at k=1, 0.103 at k=37. Figures are means over "
        f"the nine k and over the sets, each set counting the same. Encoder: {encoder.name}.",
        f"labels shuffled: each question is given another's parents, {SHUFFLES} times, ranked by "
        f"the paper's best weighting ({label_of(PAPERS_BEST)}). The weighting that is best here is "
        "chosen on one half of each set's questions and shown on the other; intervals of 95 % are "
        "a paired bootstrap's.",
        "paper: as published, of other encoders on other data (2,084 ALQA cases, 32 questions): "
        "compare the weightings, not the heights.",
    ]


def _draw(axes: Any, columns: Sequence[Mapping[str, Panel]]) -> None:
    """Draw heat maps of F1@k, weightings down and k across: ours on the left, the paper's beside.

    Maps in one column share their colours' scale, and each cell names its value.
    """
    figure = axes.figure
    axes.remove()
    height = max(map(len, columns))
    figure.set_size_inches(7.4 * len(columns), 2.9 * height)
    grid = figure.subplots(height, len(columns), squeeze=False)
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
            # Light cells need dark figures.
            colour = "black" if score > 0.6 * top else "white"
            axes.text(column, row, f"{score:.3f}", color=colour, **style)
