"""Questions about trees of documents: right and rightly cited answers, and refusals.

A folder holds the trees, each a folder, and ``questions.jsonl``: an object a line, with ``tree``,
``question``, and for those that the tree answers ``file``, its path in the tree, and ``words``,
which a right answer has, all of them. A question without ``file`` is off-topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.harness import mean, p50, tracked
from casewright.bench.report import Report
from casewright.domains.documents.domain import CANDIDATES, DOMAIN, PASSAGES, open_documents
from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.graph import Answer, build_graph
from casewright.graph.named import make_generator
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema
from casewright.stores.documents.ingest import ingest
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.feedback.sufficiency import (
    FEATURE,
    SufficiencyJudge,
    by_words,
    covered_relevance,
)
from casewright.stores.paths import data_folder

FILE = "questions.jsonl"


class DocumentQuestion(Record):
    """A question about a tree; without a file it is off-topic."""

    tree: str
    question: str
    file: str = ""
    words: Sequence[str] = ()


def read_questions(data: Path) -> list[DocumentQuestion]:
    """Return the questions of a folder, ordered by tree.

    Raises:
        InputError: The folder has no readable questions, or not the trees and files of one.
    """
    mend = 'A line is {"tree": "…", "question": "…", "file": "…", "words": ["…"]}.'
    questions = []
    for number, found in read_records(data / FILE, DocumentQuestion, mend):
        if not (data / found.tree / found.file).exists() or bool(found.file) != bool(found.words):
            raise InputError(
                f"{data / FILE}, line {number} names no tree, or a file without words. {mend}"
            )
        questions.append(found)
    return sorted(questions, key=lambda question: question.tree)


def measure_documents(data: Path, encoder: Encoder, generators: Sequence[str]) -> Report:
    """Ask every question as ``casewright ask`` does, with each of the generators."""
    rows: list[dict[str, Any]] = []
    misses: list[dict[str, Any]] = []
    for tree, store, questions in _stored(data, encoder):
        opened = open_documents(store, encoder)
        planner = make_planner(
            CASE_PLANNER, opened.plan_cases, queries=DOMAIN.queries, encoder=encoder
        )
        for name in generators:
            graph = build_graph(opened.toolbox, planner, make_generator(name, encoder))
            answers = [
                (question, Answer.from_state(graph.invoke({"question": question.question})))
                for question in tracked(f"{tree}, {name}", questions)
            ]
            rows.append(_row(tree, name, answers))
            misses += [
                {
                    "table": "misses",
                    "tree": tree,
                    "generator": name,
                    "question": q.question,
                    "why": w,
                }
                for q, answer in answers
                if (w := _wrong(q, answer))
            ]
        opened.close()
    figures = {
        f"{name}.{figure}": mean([row[figure] for row in rows if row["generator"] == name])
        for name in generators
        for figure in ("right", "right_and_cited", "refused", "letters")
    }
    notes = (
        "right: the answer has all the words; right_and_cited: and cites the file; refused: of the "
        "off-topic questions; letters and ms: medians of the answered questions. Figures: means "
        "over the trees.",
    )
    titles = {"trees": "documents", "misses": "wrong answers"}
    return Report("documents", {"data": str(data)}, figures, [*rows, *misses], notes, titles=titles)


def fit(data: Path, encoder: Encoder) -> SufficiencyJudge:
    """Train the judge of sufficiency on all questions of a folder.

    The questions of each tree are off-topic in the others. The threshold is the one that keeps
    the most of the answerable questions and refuses the most of the others, both as shares.
    """
    from sklearn.linear_model import LogisticRegression

    questions = read_questions(data)
    values: list[float] = []
    labels: list[bool] = []
    for tree, location, _ in _stored(data, encoder):
        with CaseStore(document_schema(encoder), location) as store:
            for question in questions:
                hits = by_words(question.question, store.search(question.question, CANDIDATES))
                values.append(covered_relevance(question.question, hits[:PASSAGES]))
                labels.append(bool(question.file) and question.tree == tree)
    rows, answered = np.array(values)[:, None], np.array(labels)
    model = LogisticRegression(C=100.0, class_weight="balanced").fit(rows, answered)
    weights = {FEATURE: round(float(model.coef_[0, 0]), 3)}
    regression = Regression(weights, round(float(model.intercept_[0]), 3), 0.5)
    found = regression.probabilities(rows, [FEATURE])
    shares = [
        (mean(found[answered] >= least) + mean(found[~answered] < least), least)
        for least in np.arange(0.05, 0.96, 0.01)
    ]
    best = round(float(np.mean([least for share, least in shares if share == max(shares)[0]])), 2)
    training = {
        "trees": sorted({question.tree for question in questions}),
        "answerable": int(answered.sum()),
        "others": int((~answered).sum()),
        "kept": round(mean(found[answered] >= best), 3),
        "refused": round(mean(found[~answered] < best), 3),
    }
    return SufficiencyJudge(Regression(weights, regression.bias, best), training)


def _stored(data: Path, encoder: Encoder) -> Iterator[tuple[str, Path, list[DocumentQuestion]]]:
    """Yield each tree with its store, after encoding what changed, and its questions."""
    for tree, members in groupby(read_questions(data), key=lambda question: question.tree):
        folder = (data / tree).resolve()
        name = f"{tree}-{hashlib.sha256(f'{folder} {encoder.name}'.encode()).hexdigest()[:8]}"
        location = data_folder() / "bench-documents" / name
        with CaseStore(document_schema(encoder), location) as store:
            ingest(store, folder)
        yield tree, location, list(members)


def _row(
    tree: str, generator: str, answers: Sequence[tuple[DocumentQuestion, Answer]]
) -> dict[str, Any]:
    asked = [(question, answer) for question, answer in answers if question.file]
    off_topic = [answer for question, answer in answers if not question.file]
    answered = [answer for _, answer in asked if not answer.refused]
    return {
        "table": "trees",
        "tree": tree,
        "generator": generator,
        "questions": len(asked),
        "right": mean([_right(*pair) for pair in asked]),
        "right_and_cited": mean([_right(*pair) and _cited(*pair) for pair in asked]),
        "off_topic": len(off_topic),
        "refused": mean([answer.refused for answer in off_topic]),
        "letters": p50([len(answer.text) for answer in answered] or [0]),
        "ms": p50([_milliseconds(answer) for answer in answered] or [0]),
    }


def _wrong(question: DocumentQuestion, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if nothing is."""
    if not question.file:
        return "" if answer.refused else "answered, and off-topic"
    if answer.refused:
        return "refused"
    if not _right(question, answer):
        return "not all of the words"
    return "" if _cited(question, answer) else "another file is cited"


def _right(question: DocumentQuestion, answer: Answer) -> bool:
    text = " ".join(answer.text.lower().split())
    return all(" ".join(word.lower().split()) in text for word in question.words)


def _cited(question: DocumentQuestion, answer: Answer) -> bool:
    cited = [item["source"] for item in answer.evidence if item["id"] in answer.citations]
    # A source goes on with lines, a page, or headings.
    return any(f"/{question.file}{end}" in f"{source}," for source in cited for end in (",", " ("))


def _milliseconds(answer: Answer) -> float:
    return float(
        sum(answer.usage[f"{part}_ms"] for part in ("planning", "execution", "generation"))
    )
