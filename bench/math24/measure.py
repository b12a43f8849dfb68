"""MCBR-RAG's experiments on Math-24 (Marom 2024, section 5.1): Table 1 and Table 2."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casewright.bench.math24.answerers import by_chat, reuse
from casewright.bench.math24.answers import Answer, answered
from casewright.bench.math24.data import Puzzles, read_puzzles
from casewright.bench.math24.published import TABLE_1, TABLE_2
from casewright.bench.math24.represent import COMPARING, FEATURES, PAPER, representations
from casewright.bench.math24.retrieval import KS, NAMES, Represent, table_of
from casewright.bench.tabled_report import TabledReport
from casewright.domains.math24.decomposition import classes
from casewright.domains.math24.prompts import KINDS
from casewright.stores.progress import progress_bar

#: Our rows that the paper has, too.
_PRINTED = {FEATURES: "features", PAPER: "latent", COMPARING: "latent"}
REUSE = "reuse, no model"


def measure_math24(data: Path, chat: str | None = None, runs: int = 10) -> TabledReport:
    """Retrieve and answer for the paper's splits.

    Args:
        data: The folder with the puzzles and the splits.
        chat: A chat model to answer, too, as ``provider:model``.
        runs: The first so many of the ten.

    Raises:
        InputError: The data or the model cannot be used.
    """
    puzzles = read_puzzles(data)
    chosen = range(min(runs, len(puzzles.splits)))
    answerers: dict[str, Answer] = {REUSE: reuse}
    if chat is not None:
        from casewright.planner import chat_model

        answerers[chat] = by_chat(chat_model(chat))
    ways = representations(puzzles)
    started = time.perf_counter()
    rows = _retrieval_rows(puzzles, ways, chosen)
    trained = time.perf_counter() - started
    rows += _answer_rows(puzzles, ways[COMPARING], answerers, chosen)
    return TabledReport(
        bench="math24",
        settings={"runs": len(chosen), "puzzles": len(puzzles.problems), "ks": list(KS)},
        figures={
            **_figures(rows),
            "retrieval_seconds": trained,
            "puzzles_with_more_classes_by_enumeration": float(_more_classes(puzzles)),
        },
        rows=rows,
        notes=[
            "Table 1: means over k from 1 to 5 where no k is told. SCO: a case with a common "
            "larger factor; SCD: one that the same pair makes. A run's 30 test puzzles took no "
            "part in training, its learning rate included.",
            "Table 2: one answer is checked exactly. Revise: a second attempt that is told what "
            "was wrong. Without a model the plans of the nearest case are carried over; general "
            "context is one and the same plan for all, the trivial answer.",
            "The paper's Table 2 is of chat models that are not here; --chat asks one.",
        ],
        draw=lambda axes: _draw(axes, rows),
        titles={"1": "Table 1: retrieval", "2": "Table 2: answers"},
    )


def _more_classes(puzzles: Puzzles) -> int:
    """Return how many puzzles have classes that the paper's list of solutions lacks."""
    pairs = zip(puzzles.problems, puzzles.classes, strict=True)
    return sum(bool(classes(problem) - own) for problem, own in pairs)


def _retrieval_rows(
    puzzles: Puzzles, ways: dict[str, Represent], runs: Sequence[int]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with progress_bar("Training and retrieving", len(ways), show=None) as advance:
        for name, way in ways.items():
            for label, figures in table_of(puzzles, way, runs).items():
                told = TABLE_1.get((_PRINTED.get(name, ""), label))
                rows.append(_row(name, label, None, figures.mean(axis=0), told))
                rows += [
                    _row(name, label, k, line, None)
                    for k, line in zip(KS, figures, strict=True)
                    if told is not None
                ]
            advance(1)
    return rows


def _row(
    name: str, label: str, k: int | None, figures: Sequence[float], told: Sequence[float] | None
) -> dict[str, Any]:
    own = dict(zip(NAMES, map(float, figures), strict=True))
    paper = {f"paper {one}": None if told is None else told[n] for n, one in enumerate(NAMES)}
    return {"table": "1", "cases by": name, "relevant": label, "k": k, **own, **paper}


def _answer_rows(
    puzzles: Puzzles, way: Represent, answerers: dict[str, Answer], runs: Sequence[int]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, answer in answerers.items():
        for kind in KINDS:
            for tries in (1, 2):
                found = answered(puzzles, way, answer, kind, runs, tries)
                rows.append(
                    {
                        "table": "2",
                        "answered by": name,
                        "context": kind,
                        "attempts": tries,
                        "accuracy": found.accuracy,
                        "faithfulness": found.faithfulness,
                        "negative rejection": found.negative_rejection,
                    }
                )
    for model, kinds in TABLE_2.items():
        for kind, (accuracy, faithful, rejecting) in zip(KINDS, kinds, strict=True):
            rows.append(
                {
                    "table": "2",
                    "answered by": f"paper: {model}",
                    "context": kind,
                    "attempts": 1,
                    "accuracy": accuracy,
                    "faithfulness": faithful,
                    "negative rejection": rejecting,
                }
            )
    return rows


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    slugs = {FEATURES: "features", PAPER: "paper_network", COMPARING: "comparing"}
    figures = {
        f"{row['relevant'].lower()}_{figure.lower()}_{slugs[row['cases by']]}": row[figure]
        for row in rows
        if row["table"] == "1" and row["k"] is None and row["cases by"] in slugs
        for figure in NAMES
    }
    own = [row for row in rows if row["table"] == "2" and row["answered by"] == REUSE]
    top = {row["attempts"]: row["accuracy"] for row in own if row["context"] == "top"}
    return {**figures, "reuse_accuracy": top[1], "revise_gain": top[2] - top[1]}


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    for name in (FEATURES, PAPER, COMPARING):
        own = [r for r in rows if r.get("cases by") == name and r["relevant"] == "SCD" and r["k"]]
        axes.plot([r["k"] for r in own], [r["precision"] for r in own], marker="o", label=name)
    axes.axhline(TABLE_1["latent", "SCD"][0], color="grey", linestyle=":", label="paper's mean")
    axes.set_xlabel("nearest cases, k")
    axes.set_ylabel("SCD precision")
    axes.set_xticks(KS)
    axes.set_ylim(0, 1)
    axes.legend()
