"""Tests of `casewright bench documents` on two small trees: right, cited, refused answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.documents import QUESTIONS_FILE, fit, measure_documents, read_questions
from casewright.errors import InputError
from casewright.stores import default_encoder
from casewright.stores.feedback.sufficiency import SufficiencyJudge
from tests.stores.document_files import write

TREES = {
    "mill/mill.md": "# The mill\n\nThe spindle of the mill is oiled every Monday.\n",
    "mill/saw.rst": "The saw\n=======\n\nThe saw cuts planks of oak up to four metres long.\n",
    "tea/tea.md": "# Tea\n\nTea is served in the garden at four.\n",
}
QUESTIONS: list[dict[str, Any]] = [
    {"tree": "tea", "question": "When is tea served?", "file": "tea.md", "words": ["at four"]},
    {"tree": "mill", "question": "How often is the spindle of the mill oiled?", "file": "mill.md",
     "words": ["every monday"]},
    {"tree": "mill", "question": "Which planks does the saw cut?", "file": "mill.md",
     "words": ["oak"]},
    {"tree": "mill", "question": "Who won the world cup in 1998?"},
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEWRIGHT_HOME", str(tmp_path / "home"))
    lines = "\n".join(map(json.dumps, QUESTIONS))
    return write(tmp_path / "data", {**TREES, QUESTIONS_FILE: lines})


def test_bench_judges_answers_by_their_words_and_citations_by_their_file(data: Path) -> None:
    report = measure_documents(data, default_encoder(), ["extractive"])
    mill, tea = (row for row in report.rows if row["table"] == "trees")
    assert (mill["tree"], mill["questions"], mill["off_topic"]) == ("mill", 3 - 1, 1)
    assert (mill["right"], mill["right_and_cited"], mill["refused"]) == (1.0, 0.5, 1.0)
    assert (tea["right"], tea["right_and_cited"]) == (1.0, 1.0)
    (miss,) = (row for row in report.rows if row["table"] == "misses")
    assert (miss["question"], miss["why"]) == (QUESTIONS[2]["question"], "another file is cited")
    assert report.figures["extractive.right_and_cited"] == 0.75
    assert report.figures["extractive.letters"] < 200


def test_sufficiency_judge_is_trained_on_questions_of_its_tree_and_other_trees(
    data: Path, tmp_path: Path
) -> None:
    judge = fit(data, default_encoder())
    assert judge.training["answerable"] == 3
    assert judge.training["kept"] == 1.0
    assert judge.training["far off-topic, refused"] == 1.0
    assert judge.training["near off-topic, refused"] >= 0.5
    judge.save(tmp_path / "judge.json")
    saved = json.loads((tmp_path / "judge.json").read_text())
    assert saved["weights"] == dict(judge.regression.weights)
    assert SufficiencyJudge.shipped().training["trees"]


@pytest.mark.parametrize(
    "line",
    [
        '{"question": "x"}',
        '{"tree": "none", "question": "x"}',
        '{"tree": "mill", "question": "x", "file": "none.md", "words": ["a"]}',
        '{"tree": "mill", "question": "x", "file": "mill.md"}',
    ],
)
def test_invalid_question_line_is_an_error_that_shows_the_format(data: Path, line: str) -> None:
    (data / QUESTIONS_FILE).write_text(line)
    with pytest.raises(InputError, match=r'questions.jsonl.*\{"tree": "…"'):
        read_questions(data)


def test_question_line_with_words_but_without_file_is_an_error(data: Path) -> None:
    (data / QUESTIONS_FILE).write_text('{"tree": "mill", "question": "x", "words": ["a"]}')
    with pytest.raises(InputError, match="only one of file and words is given"):
        read_questions(data)
