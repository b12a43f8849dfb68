"""RAGSys's study (Contal and McGoldrick 2024, section 4): six retrievers, four measures.

The questions are TruthfulQA's multiple-choice questions (Lin et al. 2022). Each of their right
answers is a case.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from casewright.bench.harness import mean, p50
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.demonstrations import (
    Demonstration,
    JudgedQuestion,
    RecordedScorer,
    measure_quality,
    measures,
    open_scorer,
)
from casewright.finetune.demonstrations.calibrate import interval_of
from casewright.finetune.demonstrations.cases_file import demonstration_schema, read_demonstrations
from casewright.finetune.demonstrations.judged import CaseReader
from casewright.finetune.evaluation.intervals import Resamples
from casewright.stores import Case, CaseStore, Encoder, MarginalSelector, selectors
from casewright.stores.paths import data_folder
from casewright.stores.progress import note
from casewright_studies.published import published_tables

#: TruthfulQA's file, and the subfolders that may contain it.
FILE, _FOLDERS = "mc_task.json", ("", "v1", "data/v1")
#: The retriever that returns the same demonstrations for each question, and the control.
PRIMER, NO_DEMONSTRATIONS = "fixed primer", "no demonstrations"
SELECTORS: Mapping[str, MarginalSelector] = {
    "bias": selectors.BIAS,
    "relevance": selectors.RELEVANCE,
    "relevance, bias": selectors.RELEVANCE_BIAS,
    "relevance, diversity": selectors.RELEVANCE_DIVERSITY,
    "relevance, diversity, bias": selectors.RELEVANCE_DIVERSITY_BIAS,
}
#: The paper's six retrievers.
RETRIEVERS = (PRIMER, *SELECTORS)
#: More selectors of the paper. The first prefers answers that the model finds improbable (section
#: 4.3). The rest vary λ_d, the share of relevance against diversity (Figure 1); in ``SELECTORS``,
#: "relevance, diversity" has λ_d 0.75, and "relevance" has λ_d 1.
OTHER_SELECTORS: Mapping[str, MarginalSelector] = {
    "relevance, diversity, reversed bias": MarginalSelector(lambda_d=0.75, lambda_b=1.05),
    **{f"relevance, diversity, λ_d {d:g}": MarginalSelector(d, 1.0) for d in (0.0, 0.25, 0.5)},
}
#: The retriever whose labels are shuffled as a control, and the number of shuffles.
SHUFFLED_RETRIEVER, SHUFFLE_COUNT = "relevance, diversity, bias", 20
CASE_READER = CaseReader("question")  # the field of a case that has the question
#: The report's columns by the paper's names of the measures.
COLUMN_BY_MEASURE = {"DPO": "DPO, triples", "MC1": "MC1", "MC2": "MC2 (TruthfulQA's MC3)"}
COLUMN_BY_MEASURE |= {"MC3": "mass (TruthfulQA's MC2)"}


class Study(NamedTuple):
    """The options of ``casewright bench truthfulqa``."""

    data: Path
    model: str
    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    primer: Path | None = None  # the file of the fixed primer
    work: Path | None = None  # the folder of the cached scores
    k: int = 6  # demonstrations in a prompt
    limit: int | None = None  # maximum number of questions
    seed: int = 0


def read_truthfulqa(folder: Path) -> list[JudgedQuestion]:
    """Return the questions with their right answers (the best one first) and wrong answers.

    A question's ``group`` excludes the question's own right answers from the prompts. Raise
    ``InputError`` if the folder has no ``mc_task.json``, or the file has another format.
    """
    files = [folder / subfolder / FILE for subfolder in _FOLDERS]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise InputError(
            f"{folder} holds no {FILE}. Give the folder of TruthfulQA's data: {FILE} is in data/v1 "
            "of the repository github.com/sylinrl/TruthfulQA."
        )
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return [_question(row, number) for number, row in enumerate(rows)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{file} is not TruthfulQA's file of that name. Download it again."
        ) from error


def _question(row: dict[str, Any], number: int) -> JudgedQuestion:
    best = next(answer for answer, label in row["mc1_targets"].items() if label)
    labels = row["mc2_targets"]
    right = [answer for answer, label in labels.items() if label and answer != best]
    wrong = [answer for answer, label in labels.items() if not label]
    return JudgedQuestion(row["question"], (best, *right), tuple(wrong), ("group", number))


def cases_of(questions: Sequence[JudgedQuestion]) -> list[Case]:
    """Return a case for each right answer."""
    return [
        Case({"question": question.question}, answer, metadata={"group": number})
        for number, question in enumerate(questions)
        for answer in question.right
    ]


def measure_truthfulqa(study: Study, encoder: Encoder) -> Report:
    """Measure the answers of a language model with the demonstrations of each retriever.

    Raise ``InputError`` if a file cannot be read, or the model is a chat model.
    """
    all_questions = read_truthfulqa(study.data)
    primer = None if study.primer is None else read_demonstrations(study.primer)
    scorer = open_scorer(study.model, adapter=study.adapter, device=study.device, dtype=study.dtype)
    # A higher limit keeps the questions of a lower limit, whose scores are cached.
    questions = random.Random(study.seed).sample(all_questions, len(all_questions))[: study.limit]
    started = time.perf_counter()
    work = study.work or data_folder() / "truthfulqa"
    # The store is on disk, because a filtered search in memory loops over all cases in Python.
    with (
        closing(RecordedScorer(scorer, work / "scores.sqlite")) as recorded,
        TemporaryDirectory() as folder,
        CaseStore(demonstration_schema(encoder), folder) as store,
    ):
        store.add(cases_of(all_questions))
        note(f"Measuring the quality of {store.count():,} cases …")
        measure_quality(store, recorded, CASE_READER)
        note(f"Selecting for {len(questions)} questions …")
        selections = {NO_DEMONSTRATIONS: [measures.ChosenDemonstrations()] * len(questions)}
        selections |= _demonstrations(study, store, questions, primer)
        prompts = [
            demonstrations.prompt(question)
            for selection in selections.values()
            for demonstrations, question in zip(selection, questions, strict=True)
        ]
        new_count = sum(len(prompt.answers) for prompt in recorded.missing(prompts))
        note(f"Scoring {new_count:,} answers …")
        scores = measures.score_all(recorded, prompts)
    seconds, count = time.perf_counter() - started, len(questions)
    logprobs = {name: scores[n * count : (n + 1) * count] for n, name in enumerate(selections)}
    rows = _rows(study, questions, selections, logprobs)
    retriever_rows = [row for row in rows if row["retriever"] in RETRIEVERS]
    parameters = {
        name: {"lambda_d": selector.lambda_d, "lambda_b": selector.lambda_b}
        for name, selector in {**SELECTORS, **OTHER_SELECTORS}.items()
    }
    settings = {"model": scorer.name, "k": study.k, "questions": count, "retrievers": parameters}
    settings["seed"] = study.seed
    figures = {"study_seconds": seconds, "study_answers_scored_in_this_run": float(new_count)}
    rows += _published_rows(rows[0])
    draw = partial(_draw, rows=retriever_rows, model=scorer.name)
    return Report("truthfulqa", settings, figures, rows, _notes(scorer.name, retriever_rows), draw)


def _demonstrations(
    study: Study, store: CaseStore, questions: Sequence[JudgedQuestion], primer: list[Case] | None
) -> Iterator[tuple[str, list[measures.ChosenDemonstrations]]]:
    """Yield each retriever's name and its demonstrations for each question."""
    if primer is not None:
        shown = tuple(Demonstration(c.problem["question"], str(c.solution)) for c in primer)
        yield PRIMER, [measures.ChosenDemonstrations(shown)] * len(questions)
    for name, selector in {**SELECTORS, **OTHER_SELECTORS}.items():
        yield name, measures.select_by(store, selector, questions, study.k, CASE_READER)
    random_cases = measures.select_at_random(store, questions, study.k, CASE_READER, study.seed)
    yield "cases drawn at random", random_cases


def _rows(
    study: Study,
    questions: Sequence[JudgedQuestion],
    selections: Mapping[str, Sequence[measures.ChosenDemonstrations]],
    logprobs: Mapping[str, Sequence[measures.Logprobs]],
) -> list[dict[str, Any]]:
    """Return a row for each retriever and control; the mappings have the retrievers as keys."""
    without_cases = logprobs[NO_DEMONSTRATIONS]
    rows: list[dict[str, Any]] = []
    for name, with_cases in logprobs.items():
        inputs = zip(questions, with_cases, without_cases, strict=True)
        results = [measures.measure_question(*each) for each in inputs]
        cosines = [chosen.cosine for chosen in selections[name] if chosen.cosine is not None]
        cosine = mean(cosines) if cosines else None
        rows.append(_row(name, results, cosine, len(questions)))
    rng = np.random.default_rng(study.seed)
    control = []  # measures of each question with shuffled labels
    for _ in range(SHUFFLE_COUNT):
        with_cases = logprobs[SHUFFLED_RETRIEVER]
        for question, *scores in zip(questions, with_cases, without_cases, strict=True):
            order = rng.permutation(len(scores[0]))
            shuffled = (tuple(row[i] for i in order) for row in scores)
            control.append(measures.measure_question(question, *shuffled))
    rows.append(_row(f"{SHUFFLED_RETRIEVER}: labels shuffled", control, None, len(questions)))
    if PRIMER not in selections:
        rows.insert(1, {**dict.fromkeys(rows[0]), "retriever": f"{PRIMER}: no file was given"})
    return rows


def _published_rows(columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the paper's tables, with the columns of the report."""
    for model, table in published_tables("ragsys").items():
        for name, figures in zip(RETRIEVERS, table, strict=True):
            cells = dict(zip(COLUMN_BY_MEASURE.values(), figures, strict=True))
            yield {**dict.fromkeys(columns), "retriever": f"published, {model}: {name}", **cells}


def _row(
    name: str, results: Sequence[measures.AnswerMeasures], cosine: float | None, count: int
) -> dict[str, Any]:
    """Return a retriever's row; ``results`` has all questions in order, once or several times."""
    triple_margins = np.concatenate([result.margins.ravel() for result in results])
    question_margins = np.array([result.margin for result in results])
    ratios = np.array([result.mass_ratio for result in results], dtype=np.float64)
    mean_margins = question_margins.reshape(-1, count).mean(axis=0)
    low, high = interval_of(mean_margins, Resamples(count))
    return {
        "retriever": name,
        "DPO, triples": mean(np.concatenate([r.preferences.ravel() for r in results])),
        "DPO, questions": mean([r.preference for r in results]),
        "margin": mean(question_margins),
        "margin from": low,
        "margin to": high,
        "margin, median of triples": p50(triple_margins),
        "margin, triples": mean(triple_margins),
        "MC1": mean([r.mc1 for r in results]),
        "MC2 (TruthfulQA's MC3)": mean([r.share_above for r in results]),
        "MC3 as printed: ratio, mean": mean(ratios),
        "ratio, median": p50(ratios),
        "mass (TruthfulQA's MC2)": mean([r.mass for r in results]),
        "cosine of pairs": cosine,
        "questions": count,
        "triples": len(triple_margins) * count // len(results),  # question, right, wrong answer
    }


def _notes(model: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    notes = [
        f"The model is {model}. A small model knows few answers, so compare the differences "
        "between retrievers with the published differences (RAGSys, Tables 1 and 2).",
        "No prompt has the cases of its own question. margin: Δ, the gain in log-probability of "
        "right over wrong answers, with its 95 % interval over questions; DPO: log σ(Δ).",
    ]
    for name in ("margin", *COLUMN_BY_MEASURE.values()):
        ranked = sorted(rows, key=lambda row: -row[name])
        notes.append(f"By {name}: {' > '.join(row['retriever'] for row in ranked)}.")
    return notes


def _draw(axes: Any, rows: Sequence[dict[str, Any]], model: str) -> None:
    columns = ("retriever", "margin", "margin from", "margin to")
    names, margins, low, high = ([row[column] for row in rows] for column in columns)
    errors = [np.subtract(margins, low), np.subtract(high, margins)]
    axes.barh(names, margins, xerr=errors, capsize=3)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set(xlabel="margin Δ, mean over questions, 95 % interval", title=f"TruthfulQA, {model}")
