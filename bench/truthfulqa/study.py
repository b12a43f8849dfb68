"""RAGSys's study (Contal and McGoldrick 2024, section 5): six retrievers, four measures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from casewright.bench.report import Report
from casewright.bench.truthfulqa.data import cases_of, read_primer, read_truthfulqa
from casewright.bench.truthfulqa.figures import PAPER, RANKED, ranking, row_of, shuffled
from casewright.bench.truthfulqa.published import Published, read_published
from casewright.bench.truthfulqa.retrievers import NAMES, PRIMER, READING, SELECTORS, all_shown
from casewright.bench.truthfulqa.speed import Speed, measure_speed
from casewright.errors import InputError
from casewright.finetune.demonstrations import (
    Asked,
    JudgedQuestion,
    ModelScorer,
    RecordedScorer,
    measure_quality,
    open_scorer,
)
from casewright.finetune.demonstrations.benefit import Logprobs, judged, score_all
from casewright.finetune.demonstrations.cases_file import demonstration_schema
from casewright.finetune.demonstrations.open_scorer import is_chat
from casewright.finetune.demonstrations.shown import Shown
from casewright.stores import CaseStore, Encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import note

#: Questions that the two ways of scoring are timed on.
_TIMED = 64
#: The retriever on whose answers the labels are shuffled.
_LAST = "relevance, diversity, bias"


@dataclass(frozen=True, slots=True)
class Study:
    """What the study is run with.

    Attributes:
        data: Where TruthfulQA's data is.
        model: The model's name; see ``open_scorer``.
        adapter: A PEFT adapter for it.
        device: Where it runs.
        dtype: Of its weights.
        primer: A file with the fixed primer's pairs.
        published: A file with the paper's figures.
        work: Where scores are kept, so that a stopped run goes on.
        k: How many cases are shown.
        limit: At most so many questions, the first ones; the cases are those of all.
        seed: Of the controls.
    """

    data: Path
    model: str
    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    primer: Path | None = None
    published: Path | None = None
    work: Path | None = None
    k: int = 6
    limit: int | None = None
    seed: int = 0


def measure_truthfulqa(study: Study, encoder: Encoder) -> Report:
    """Run the study.

    Raises:
        InputError: A file cannot be used, or the model is a chat model.
    """
    every = read_truthfulqa(study.data)
    primer = None if study.primer is None else read_primer(study.primer)
    published = {} if study.published is None else read_published(study.published, NAMES)
    if is_chat(study.model):
        raise InputError(
            f"{study.model!r} is a chat model: it tells no probabilities of a demonstration, which "
            "the bias is made of. Take a local model."
        )
    scorer = open_scorer(study.model, adapter=study.adapter, device=study.device, dtype=study.dtype)
    assert isinstance(scorer, ModelScorer)
    questions = every[: study.limit]
    started = time.perf_counter()
    recorded = RecordedScorer(
        scorer, (study.work or data_folder() / "truthfulqa") / "scores.sqlite"
    )
    try:
        # In a folder: in memory, a search with a condition looks through all cases in Python.
        with (
            TemporaryDirectory() as folder,
            CaseStore(demonstration_schema(encoder), folder) as store,
        ):
            store.add(cases_of(every))
            note(f"Measuring the quality of {store.count():,} cases …")
            measure_quality(store, recorded, READING)
            note(f"Selecting for {len(questions)} questions …")
            shown = dict(all_shown(store, questions, primer, study.k, study.seed))
        asked = _asked(questions, shown)
        new = sum(len(one.answers) for one in recorded.missing([a for r in asked for a in r]))
        note(f"Scoring {new:,} answers that are not scored yet …")
        flat = score_all(recorded, [one for row in asked for one in row])
    finally:
        recorded.close()
    spent = time.perf_counter() - started
    count = len(questions)
    parts = [flat[start : start + count] for start in range(0, len(flat), count)]
    note("Timing the two ways of scoring …")
    speed = _speed(scorer, asked[1:])
    return _report(study, scorer.name, questions, shown, parts, published, speed, spent, new)


def _asked(questions: Sequence[JudgedQuestion], shown: dict[str, list[Shown]]) -> list[list[Asked]]:
    """Return what is asked: first each question alone, then by each retriever."""
    rows = [[Shown()] * len(questions), *shown.values()]
    return [
        [one.asked(question) for one, question in zip(row, questions, strict=True)] for row in rows
    ]


def _speed(scorer: ModelScorer, asked: Sequence[Sequence[Asked]]) -> Speed:
    flat = [one for row in asked for one in row]
    timed = flat[:: max(1, len(flat) // _TIMED)][:_TIMED]
    return measure_speed(scorer, scorer.without_reuse(), timed)


def _report(
    study: Study,
    model: str,
    questions: Sequence[JudgedQuestion],
    shown: dict[str, list[Shown]],
    parts: Sequence[Sequence[Logprobs]],
    published: Published,
    speed: Speed,
    spent: float,
    new: int,
) -> Report:
    alone = parts[0]
    rows: list[dict[str, Any]] = []
    for name, given in zip(("no demonstrations", *shown), parts, strict=True):
        found = [judged(*one) for one in zip(questions, given, alone, strict=True)]
        cosines = [one.cosine for one in shown.get(name, ()) if one.cosine is not None]
        rows.append(
            row_of(name, found, float(np.mean(cosines)) if cosines else None, len(questions))
        )
    last = parts[1 + list(shown).index(_LAST)]
    control = shuffled(questions, last, alone, study.seed)
    rows.append(row_of(f"{_LAST}: labels shuffled", control, None, len(questions)))
    if PRIMER not in shown:
        rows.insert(1, {**dict.fromkeys(rows[0]), "retriever": f"{PRIMER}: no file was given"})
    _set_beside(rows, published)
    own = [row for row in rows if row["retriever"] in NAMES]
    figures = {
        "seconds_per_1000_answers_states_reused": speed.reused,
        "seconds_per_1000_answers_each_whole": speed.apart,
        "ratio_each_whole_over_states_reused": speed.apart / speed.reused,
        "largest_difference_of_logprobs": speed.difference,
        "answers_timed": float(speed.answers),
        "study_seconds": spent,
        "study_answers_scored_in_this_run": float(new),
    }
    return Report(
        bench="truthfulqa",
        settings={
            "model": model,
            "k": study.k,
            "questions": len(questions),
            "retrievers": {
                name: {"lambda_d": s.lambda_d, "lambda_b": s.lambda_b}
                for name, s in SELECTORS.items()
            },
            "seed": study.seed,
        },
        figures=figures,
        rows=rows,
        notes=[*_notes(model, bool(published)), *_rankings(own)],
        draw=lambda axes: _draw(axes, own, model),
    )


def _set_beside(rows: Sequence[dict[str, Any]], published: Published) -> None:
    for model, table in published.items():
        for row in rows:
            told = table.get(row["retriever"], {})
            for name in PAPER:
                row[f"{model}: {name}"] = told.get(name)


def _notes(model: str, beside: bool) -> list[str]:
    notes = [
        f"The model is {model}. A small one that was trained on other text knows nothing of these "
        "questions: its figures say nothing of the paper's Mistral-7B and Llama-3-8B.",
        "Each question is asked without cases of its own. Margin is Δ with its 95 % interval over "
        "questions; DPO is log σ(Δ).",
    ]
    if not beside:
        notes.append(
            "The paper's figures are not part of this package: --published FILE sets them beside."
        )
    return notes


def _rankings(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [f"By {name}: {' > '.join(ranking(rows, name))}." for name in RANKED]


def _draw(axes: Any, rows: Sequence[dict[str, Any]], model: str) -> None:
    names = [row["retriever"] for row in rows]
    middles = [row["margin"] for row in rows]
    reach = [
        [row["margin"] - row["margin from"] for row in rows],
        [row["margin to"] - row["margin"] for row in rows],
    ]
    axes.barh(names, middles, xerr=reach, capsize=3)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("margin Δ, mean over questions, 95 % interval")
    axes.set_title(f"TruthfulQA, {model}")
