"""Measures answers to questions about folders of documents: facts, citations and refusals.

The data folder has subfolders of documents (trees) and a file ``questions.jsonl``. A line of this
file is an object with a ``tree`` and a ``question``. A question that the tree answers also has a
``file`` (a path in the tree) and the ``words`` of a right answer. Other questions are off-topic.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.answer import STAGES
from casewright.bench.harness import mean, p50, tracked
from casewright.bench.report import Report
from casewright.domains.documents.domain import DOMAIN, open_documents
from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.graph import Answer, build_graph
from casewright.graph.named import make_generator
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.stores import CaseStore, Encoder, document_schema, ingest
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.feedback.sufficiency import FEATURES, SufficiencyJudge
from casewright.stores.passages.search import PassageSearch
from casewright.stores.paths import data_folder

QUESTIONS_FILE = "questions.jsonl"
#: Share of off-topic questions that the trained judge refuses. Two kinds have equal weights: "near"
#: (the tree's own off-topic questions) and "far" (questions about other trees).
REFUSED_SHARE = 0.9
NOTES = (
    "right: share of the questions whose answer has all words. right_and_cited: share of the "
    "questions whose answer has all words and cites the file. refused: share of the off-topic "
    "questions that are refused. letters, ms: medians over the answered questions. Figures are "
    "means over the trees.",
)


class DocumentQuestion(Record):
    """A question about a tree; without a file it is off-topic."""

    tree: str
    question: str
    file: str = ""
    words: Sequence[str] = ()


def read_questions(data: Path) -> list[DocumentQuestion]:
    """Return a folder's questions, sorted by tree; ``InputError`` for a missing tree or file."""
    line_format = 'A line is {"tree": "…", "question": "…", "file": "…", "words": ["…"]}.'
    questions = []
    for number, record in read_records(data / QUESTIONS_FILE, DocumentQuestion, line_format):
        file = data / record.tree / record.file
        if not file.exists() or bool(record.file) != bool(record.words):
            problem = "the tree or the file does not exist, or only one of file and words is given."
            raise InputError(f"{data / QUESTIONS_FILE}, line {number}: {problem} {line_format}")
        questions.append(record)
    return sorted(questions, key=lambda question: question.tree)


def measure_documents(data: Path, encoder: Encoder, generators: Sequence[str]) -> Report:
    """Answer every question as ``casewright ask`` does, with each generator."""
    rows: list[dict[str, Any]] = []
    misses: list[dict[str, Any]] = []
    for tree, location, questions in _ingested(data, encoder):
        opened = open_documents(location, encoder)
        planner = make_planner(
            CASE_PLANNER, opened.plan_cases, queries=DOMAIN.queries, encoder=encoder
        )
        for name in generators:
            generator = make_generator(name, encoder, reads_passages=True)
            graph = build_graph(opened.toolbox, planner, generator)
            labels = {"table": "misses", "tree": tree, "generator": name}
            answers = []
            for question in tracked(f"{tree}, {name}", questions):
                answer = Answer.from_state(graph.invoke({"question": question.question}))
                answers.append((question, answer))
                if fault := _fault(question, answer):
                    misses.append({**labels, "question": question.question, "why": fault})
            rows.append(_row(tree, name, answers))
        opened.close()
    figures = {
        f"{name}.{figure}": mean([row[figure] for row in rows if row["generator"] == name])
        for name in generators
        for figure in ("right", "right_and_cited", "refused", "letters")
    }
    titles = {"trees": "documents", "misses": "wrong answers"}
    return Report("documents", {"data": str(data)}, figures, [*rows, *misses], NOTES, titles=titles)


def fit(data: Path, encoder: Encoder) -> SufficiencyJudge:
    """Train the judge of sufficient evidence on all questions of a folder.

    Each tree gets off-topic questions about other trees, a third as many as it has questions.
    Each kind of a tree's questions has the same total weight. ``REFUSED_SHARE`` sets the threshold.
    """
    from sklearn.linear_model import LogisticRegression

    questions = read_questions(data)
    answerable = [question for question in questions if question.file]
    feature_rows: list[Sequence[float]] = []
    labels: list[tuple[str, str]] = []
    for tree, location, tree_questions in _ingested(data, encoder):
        others = [question for question in answerable if question.tree != tree]
        far = random.Random(tree).sample(others, min(-(-len(tree_questions) // 3), len(others)))
        with CaseStore(document_schema(encoder), location) as store:
            search = PassageSearch(store)
            for question in tracked(tree, [*tree_questions, *far]):
                hits = search.best(question.question)
                feature_rows.append(search.features(question.question, hits))
                kind = "answerable" if question.file else "near"
                labels.append((tree, kind if question.tree == tree else "far"))
    features, kinds = np.array(feature_rows), np.array([kind for _, kind in labels])
    counts = Counter(labels)
    weights = np.array([1 / counts[label] for label in labels])
    is_answerable = kinds == "answerable"
    model = LogisticRegression(C=10_000.0).fit(features, is_answerable, sample_weight=weights)
    feature_weights = [round(float(weight), 3) for weight in model.coef_[0]]
    names = FEATURES[: features.shape[1]]
    coefficients = dict(zip(names, feature_weights, strict=True))
    bias = round(float(model.intercept_[0]), 3)
    probabilities = Regression(coefficients, bias, threshold=0.5).probabilities(features, names)
    off_topic = ~is_answerable
    highest_refused = np.quantile(
        probabilities[off_topic], REFUSED_SHARE, weights=weights[off_topic], method="inverted_cdf"
    )
    # Half a unit of the last decimal is added, since an equal probability is not refused.
    threshold = round(float(highest_refused) + 0.0005, 3)
    kept_shares = {
        kind: float(np.average(probabilities[chosen] >= threshold, weights=weights[chosen]))
        for kind in ("answerable", "near", "far")
        if (chosen := kinds == kind).any()
    }
    trees = sorted({question.tree for question in questions})
    kept = round(kept_shares.pop("answerable"), 3)
    training = {"trees": trees, "answerable": len(answerable), "kept": kept}
    training |= {f"{kind} off-topic, refused": round(1 - s, 3) for kind, s in kept_shares.items()}
    return SufficiencyJudge(Regression(coefficients, bias, threshold), training)


def _ingested(data: Path, encoder: Encoder) -> Iterator[tuple[str, Path, list[DocumentQuestion]]]:
    """Ingest each tree; yield its name, the location of its store, and its questions."""
    for tree, questions in groupby(read_questions(data), key=lambda question: question.tree):
        folder = (data / tree).resolve()
        name = f"{tree}-{hashlib.sha256(f'{folder} {encoder.name}'.encode()).hexdigest()[:8]}"
        location = data_folder() / "bench-documents" / name
        with CaseStore(document_schema(encoder), location) as store:
            ingest(store, folder)
        yield tree, location, list(questions)


def _row(
    tree: str, generator: str, answers: Sequence[tuple[DocumentQuestion, Answer]]
) -> dict[str, Any]:
    on_topic = [(question, answer) for question, answer in answers if question.file]
    off_topic = [answer for question, answer in answers if not question.file]
    answered = [answer for _, answer in on_topic if not answer.refused]
    return {
        "table": "trees",
        "tree": tree,
        "generator": generator,
        "questions": len(on_topic),
        "right": mean([_is_right(*pair) for pair in on_topic]),
        "right_and_cited": mean([_is_right(*pair) and _cites_file(*pair) for pair in on_topic]),
        "off_topic": len(off_topic),
        "refused": mean([answer.refused for answer in off_topic]),
        "letters": p50([len(answer.text) for answer in answered] or [0]),
        "ms": p50([sum(a.usage[f"{stage}_ms"] for stage in STAGES) for a in answered] or [0]),
    }


def _fault(question: DocumentQuestion, answer: Answer) -> str:
    """Return a description of an answer's fault; empty if the answer is right."""
    if not question.file:
        return "" if answer.refused else "answered, and off-topic"
    if answer.refused:
        return "refused"
    if not _is_right(question, answer):
        return "not all of the words"
    return "" if _cites_file(question, answer) else "another file is cited"


def _is_right(question: DocumentQuestion, answer: Answer) -> bool:
    # A refusal names the nearest titles, which may have the words.
    if answer.refused:
        return False
    text = " ".join(answer.text.lower().split())
    return all(" ".join(word.lower().split()) in text for word in question.words)


def _cites_file(question: DocumentQuestion, answer: Answer) -> bool:
    cited = [item["source"] for item in answer.evidence if item["id"] in answer.citations]
    # A source ends with the file's path, or the path and ", page …", ", lines …" or " (headings)".
    return any(f"/{question.file}{end}" in f"{source}," for source in cited for end in (",", " ("))
