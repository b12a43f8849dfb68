"""The feedback bench's table, figures and lines, out of what was tried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.bench.feedback.judges import GOLD, OFFLINE
from casewright.bench.feedback.post_loop import POST_KS
from casewright.bench.feedback.runs import K, Run, State
from casewright.bench.feedback.sets import FeedbackQuestion, FeedbackSet


@dataclass(frozen=True, slots=True)
class Arm:
    """One strategy with one judge, over a set's questions.

    Attributes:
        strategy: How it searches again.
        judge: Who judges.
        runs: One a question.
        singles: What a single search finds that judges as many, one a question.
    """

    strategy: str
    judge: str
    runs: Sequence[Run]
    singles: Sequence[State]


@dataclass(frozen=True, slots=True)
class Trial:
    """One set under one weighting of its facets, and all that was tried on its test questions."""

    name: str
    found: FeedbackSet
    questions: Sequence[FeedbackQuestion]
    arms: Sequence[Arm]
    post: Mapping[int, tuple[Sequence[Run], Sequence[int]]]
    filtered: Sequence[State]
    alone: Mapping[int, float]


def mean(values: Sequence[float]) -> float:
    """Return the mean of some values; 0 of none."""
    return float(np.mean(values)) if values else 0.0


def _gain(trial: Trial, arm: Arm) -> tuple[float, float]:
    """Return an arm's mean gain over single searches, in points, and its standard error."""
    differences = [
        100 * (run.last.coverage(asked) - alone.coverage(asked))
        for run, alone, asked in zip(arm.runs, arm.singles, trial.questions, strict=True)
    ]
    return mean(differences), float(np.std(differences) / np.sqrt(len(differences)))


def _precision(states: Sequence[State], questions: Sequence[FeedbackQuestion]) -> float:
    """Return which share of all that was called relevant is."""
    right = sum(len(s.marked & q.relevant) for s, q in zip(states, questions, strict=True))
    return right / max(sum(state.size for state in states), 1)


def rows_of(trial: Trial) -> list[dict[str, Any]]:
    """Return the table's rows: one an arm, the post's loop, and for code the plain filter."""
    asked = trial.questions
    rows = []
    for arm in trial.arms:
        lasts = [run.last for run in arm.runs]
        gain, error = _gain(trial, arm)
        most = max(len(run.states) for run in arm.runs)
        by_round = [
            mean([run.after(n).answer(q) for run, q in zip(arm.runs, asked, strict=True)])
            for n in range(1, most + 1)
        ]
        at_k = [
            mean([run.after(n).at_k(q) for run, q in zip(arm.runs, asked, strict=True)])
            for n in range(1, most + 1)
        ]
        rows.append(
            {
                "set": trial.name,
                "strategy": arm.strategy,
                "judge": arm.judge,
                "rounds": mean([len(run.states) for run in arm.runs]),
                "judged": mean([len(state.judged) for state in lasts]),
                "found": mean([s.coverage(q) for s, q in zip(lasts, asked, strict=True)]),
                "single": mean([s.coverage(q) for s, q in zip(arm.singles, asked, strict=True)]),
                "gain": f"{gain:+.1f} ± {error:.1f}",
                "answer": by_round[-1],
                "single answer": mean(
                    [s.answer(q) for s, q in zip(arm.singles, asked, strict=True)]
                ),
                "precision": _precision(lasts, asked),
                f"recall@{K}": at_k[-1],
                f"single recall@{K}": mean(
                    [s.at_k(q) for s, q in zip(arm.singles, asked, strict=True)]
                ),
                "tokens": round(mean([run.tokens for run in arm.runs])),
                "answer by round": _shown(by_round),
                f"recall@{K} by round": _shown(at_k),
            }
        )
    for k, (runs, judged) in trial.post.items():
        rows.append(
            {
                "set": trial.name,
                "strategy": f"the post's loop, {k} a round",
                "judge": GOLD,
                "rounds": mean([len(run.states) for run in runs]),
                "judged": mean(judged),
                "found": mean([r.last.coverage(q) for r, q in zip(runs, asked, strict=True)]),
                "answer": mean([r.last.answer(q) for r, q in zip(runs, asked, strict=True)]),
                f"recall@{K}": mean([r.last.at_k(q) for r, q in zip(runs, asked, strict=True)]),
                "tokens": round(mean([run.tokens for run in runs])),
            }
        )
    if trial.filtered:
        rows.append(
            {
                "set": trial.name,
                "strategy": "plain symbol filter",
                "judge": "none",
                "judged": mean([len(state.judged) for state in trial.filtered]),
                "found": mean([s.coverage(q) for s, q in zip(trial.filtered, asked, strict=True)]),
                "answer": mean([s.answer(q) for s, q in zip(trial.filtered, asked, strict=True)]),
                "precision": _precision(trial.filtered, asked),
            }
        )
    return rows


def _shown(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def figures_of(trial: Trial) -> dict[str, float]:
    """Return of every arm its gain, the share of the missed that it found, and its cost."""
    name, asked = _plain(trial.name), trial.questions
    figures = {f"single_recall_at_{k}_{name}": share for k, share in trial.alone.items()}
    gains = {(arm.strategy, arm.judge): _gain(trial, arm)[0] for arm in trial.arms}
    for arm in trial.arms:
        key = _plain(f"{name}_{arm.strategy}_{arm.judge}")
        figures[f"gain_points_{key}"] = gains[arm.strategy, arm.judge]
        missed = 1 - mean([s.coverage(q) for s, q in zip(arm.singles, asked, strict=True)])
        if arm.judge in (GOLD, OFFLINE) and missed:
            figures[f"share_of_missed_found_{key}"] = figures[f"gain_points_{key}"] / 100 / missed
        best = gains[arm.strategy, GOLD]
        if arm.judge == OFFLINE and best > 0:
            figures[f"share_of_gold_gain_kept_{key}"] = gains[arm.strategy, OFFLINE] / best
        if arm.judge == GOLD:
            ours = mean([r.last.answer(q) for r, q in zip(arm.runs, asked, strict=True)])
            judged = mean([len(r.last.judged) for r in arm.runs])
            tokens = mean([r.tokens for r in arm.runs])
            figures |= _beside_post(trial, key, ours, judged, tokens)
    return figures


def _plain(text: str) -> str:
    return "_".join(re.findall(r"\w+", text))


def _beside_post(
    trial: Trial, key: str, ours: float, judged: float, tokens: float
) -> dict[str, float]:
    """Return ratios to the post's loop: at as many a round, and where it first finds as much."""
    figures: dict[str, float] = {}
    for k, (runs, theirs) in trial.post.items():
        answer = mean([r.last.answer(q) for r, q in zip(runs, trial.questions, strict=True)])
        if k == POST_KS[0]:
            figures[f"judged_ratio_to_post_of_{k}_{key}"] = judged / mean(theirs)
        if answer >= ours or k == POST_KS[-1]:
            kind = "of_equal_recall" if answer >= ours else f"of_{k}_which_finds_less"
            figures[f"judged_ratio_to_post_{kind}_{key}"] = judged / mean(theirs)
            spent = mean([run.tokens for run in runs])
            figures[f"tokens_ratio_to_post_{kind}_{key}"] = tokens / spent
            return figures
    return figures


def lines_of(trial: Trial) -> dict[str, list[tuple[float, float]]]:
    """Return the lines of a plot: after each round, how many were judged, and what was found."""
    asked = trial.questions
    lines: dict[str, list[tuple[float, float]]] = {}
    for arm in trial.arms:
        most = max(len(run.states) for run in arm.runs)
        lines[f"{arm.strategy}, {arm.judge}"] = [
            (
                mean([len(run.after(n).judged) for run in arm.runs]),
                mean([run.after(n).coverage(q) for run, q in zip(arm.runs, asked, strict=True)]),
            )
            for n in range(1, most + 1)
        ]
    # As far as the loops go, and no further.
    widest = max(x for line in lines.values() for x, _ in line)
    lines["one search"] = [(k, share) for k, share in trial.alone.items() if 10 <= k <= 2 * widest]
    return lines
