"""Training the offline judge on labelled questions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.finetune.judge_rounds import (
    FIRST_K,
    MORE_K,
    LoopRunner,
    auc,
    calibration_error,
    mark_by_labels,
)
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.labelled import labelled_set
from casewright.finetune.judge_sets.sets import LabelledQuestion, LabelledSet
from casewright.finetune.judge_training import train_judge
from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores.feedback import (
    JudgeModel,
    OfflineJudge,
    RocchioStrategy,
    SentenceStrategy,
)
from tests.support.encoders import HashingEncoder

PLACES = [
    f"{a}{b}" for a in ("Mill", "Stone", "Ash", "Oak", "Lin") for b in ("ford", "ham", "wick")
]
PEOPLE = [
    f"{a} {b}" for a in ("Ada", "Ben", "Cleo", "Dan", "Eve") for b in ("Hart", "Rook", "Vale")
]
RIVERS = [
    f"{a} {b}" for a in ("Blue", "Long", "Old", "Wild", "Slow") for b in ("Run", "Beck", "Burn")
]


def folder(path: Path) -> Path:
    """Write two-hop questions about the river of a person's town of birth; return the folder."""
    rng = random.Random(3)
    towns, rivers = rng.sample(PLACES, 15), rng.sample(RIVERS, 15)
    cases, questions = [], []
    for n, (person, town, river) in enumerate(zip(PEOPLE, towns, rivers, strict=True)):
        person_text = f"{person} was a painter. The birth of {person} was in {town}."
        town_text = f"{town} is a town. The river {river} flows by."
        cases += [
            {"id": f"p{n}", "title": person, "text": person_text},
            {"id": f"t{n}", "title": town, "text": town_text},
            {"id": f"x{n}", "title": f"{person} prize", "text": f"A prize of painters, year {n}."},
            {"id": f"y{n}", "title": river, "text": f"The {river} has fish number {n}."},
        ]
        for m, words in enumerate(
            ("Which river flows by the place of birth of", "river at home of")
        ):
            question = f"{words} {person}?"
            questions.append(
                {"id": f"{n}-{m}", "question": question, "relevant": [f"p{n}", f"t{n}"]}
            )
    write_records(path / "cases.jsonl", cases)
    write_records(path / "questions.jsonl", questions)
    return path


def write_records(file: Path, records: Sequence[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(entry) + "\n" for entry in records), encoding="utf-8")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelledSet]:
    towns = labelled_set(folder(tmp_path_factory.mktemp("labelled")))
    parts = [[q for q in towns.questions if q.id.endswith(end)] for end in "01"]
    with towns.store(HashingEncoder(64)) as store:
        yield LabelledSet("towns", store, *parts, origin={"licence": "none"})


@pytest.fixture(scope="module")
def model(labelled: LabelledSet) -> JudgeModel:
    return train_judge([labelled])


def test_trained_judge_predicts_relevance_better_than_its_control(model: JudgeModel) -> None:
    figures = model.training["test_figures"]["towns"]["sentences"]
    assert figures["questions"] == 15
    assert figures["auc"] > 0.85
    assert figures["auc"] > figures["auc_control"] + 0.1
    assert figures["brier"] < figures["brier_base_rate"]
    assert figures["marked_precision"] > 0.5
    assert model.training["sets"]["towns"] == {
        "licence": "none",
        "questions_training": 15,
        "questions_test": 15,
    }


def test_judge_trained_twice_on_equal_data_gives_an_equal_file(
    model: JudgeModel, labelled: LabelledSet, tmp_path: Path
) -> None:
    first, second = tmp_path / "one.json", tmp_path / "other.json"
    model.save(first)
    train_judge([labelled]).save(second)
    assert first.read_bytes() == second.read_bytes()
    assert JudgeModel.load(first) == model


def test_judge_training_does_not_use_the_test_questions(
    model: JudgeModel, labelled: LabelledSet
) -> None:
    missing = frozenset({"00000000-0000-4000-8000-000000000000"})
    changed = [LabelledQuestion(q.id, f"{q.text} really", missing) for q in labelled.test]
    other = LabelledSet(labelled.name, labelled.store, labelled.training, changed)
    retrained = train_judge([other])
    assert (retrained.first, retrained.later) == (model.first, model.later)


@pytest.mark.parametrize("strategy", [SentenceStrategy(), RocchioStrategy()], ids=["0", "1"])
def test_judge_training_rounds_equal_those_of_the_feedback_loop(
    model: JudgeModel, labelled: LabelledSet, strategy: SentenceStrategy | RocchioStrategy
) -> None:
    from casewright.finetune.judge_rounds import model_marker

    runner = LoopRunner(labelled, strategy)
    limits = FeedbackLimits(first=FIRST_K, more=MORE_K, seconds=60.0)
    for question in labelled.test:
        loop = build_feedback(labelled.store, OfflineJudge(model), strategy, limits=limits)
        result = FeedbackResult.from_state(loop.invoke({"question": question.text}))
        rounds = runner.rounds(question, model_marker(model))
        assert [entry["id"] for entry in result.candidates] == [i for r, _ in rounds for i in r.ids]
        marked = {id_ for _, ids in rounds for id_ in ids}
        assert {entry["id"] for entry in result.candidates if entry["relevant"]} == marked


def test_labels_as_marks_marks_exactly_the_relevant_cases(labelled: LabelledSet) -> None:
    runner = LoopRunner(labelled, SentenceStrategy())
    for question in labelled.test:
        for round_, marked in runner.rounds(question, mark_by_labels):
            assert set(marked) == question.relevant.intersection(round_.ids)


def test_judge_training_without_relevant_cases_raises_input_error(labelled: LabelledSet) -> None:
    missing = frozenset({"00000000-0000-4000-8000-000000000000"})
    questions = [LabelledQuestion(q.id, q.text, missing) for q in labelled.training]
    empty = LabelledSet("empty", labelled.store, questions, labelled.test)
    with pytest.raises(InputError, match="0 are relevant"):
        train_judge([empty])


def test_find_sets_returns_one_set_for_a_labelled_folder(tmp_path: Path) -> None:
    (towns,) = find_sets(folder(tmp_path))
    assert (towns.name, len(towns.cases), len(towns.questions)) == (tmp_path.name, 60, 30)


def test_labelled_set_with_an_empty_half_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 questions to train with and 0 to test with"):
        find_sets(folder(tmp_path), limit=1)


CASE = '{"id": "a", "text": "one"}\n'
QUESTION = '{"id": "q", "question": "which?", "relevant": ["a"]}\n'


@pytest.mark.parametrize(
    ("cases", "questions", "words"),
    [
        (None, QUESTION, ["cases.jsonl cannot be read"]),
        (CASE, None, ["questions.jsonl cannot be read"]),
        ("", QUESTION, ["cases.jsonl is empty"]),
        (CASE + "{", QUESTION, ["cases.jsonl, line 2", "no JSON"]),
        ("\n[1]\n", QUESTION, ["cases.jsonl, line 2", "dictionary"]),
        ('{"id": 1, "text": "one"}', QUESTION, ["cases.jsonl, line 1", "id: "]),
        ('{"id": "a", "text": " "}', QUESTION, ["cases.jsonl, line 1", "text: "]),
        ('{"id": "a", "text": "b", "title": 3}', QUESTION, ["line 1", "title: "]),
        (CASE + CASE, QUESTION, ["cases.jsonl, line 2", "'a'"]),
        (CASE, QUESTION + QUESTION, ["questions.jsonl, line 2", "'q'"]),
        (CASE, '{"id": "q", "relevant": ["a"]}', ["questions.jsonl, line 1", "question: "]),
        (CASE, '{"id": "q", "question": "w", "relevant": []}', ["line 1", "relevant: "]),
        (CASE, '{"id": "q", "question": "w", "relevant": "a"}', ["line 1", "relevant: "]),
        (CASE, '{"id": "q", "question": "w", "relevant": ["b"]}', ["line 1", "'b'"]),
        (CASE, '{"id": "q", "question": "w", "relevant": [["a"]]}', ["line 1", "relevant.0"]),
        ("\udcff", QUESTION, ["cases.jsonl is no UTF-8"]),
    ],
    ids=range(16),
)
def test_invalid_labelled_data_raises_input_error_naming_the_place(
    tmp_path: Path, cases: str | None, questions: str | None, words: list[str]
) -> None:
    for name, text in (("cases", cases), ("questions", questions)):
        if text is not None:
            (tmp_path / f"{name}.jsonl").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(InputError) as caught:
        labelled_set(tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_labelled_cases_without_titles_make_a_store_with_one_facet(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(CASE, encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(QUESTION, encoding="utf-8")
    labelled = labelled_set(tmp_path)
    assert labelled.questions[0].relevant == {labelled.cases[0].id}
    with labelled.store(HashingEncoder()) as store:
        assert [facet.name for facet in store.schema.facets] == ["text"]


def test_auc_and_calibration_error_match_known_values() -> None:
    labels = np.array([True, False, True, False])
    assert auc(np.array([0.9, 0.1, 0.8, 0.2]), labels) == 1
    assert auc(np.array([0.1, 0.9, 0.2, 0.8]), labels) == 0
    assert auc(np.array([0.9, 0.8, 0.5, 0.5]), labels) == pytest.approx(0.625)
    assert auc(np.array([0.3, 0.4, 0.5, 0.6]), np.ones(4, bool)) == 0.5
    # Half are right of the two with 0.55, and of the two with a mean of 0.975.
    scores = np.array([0.55, 0.55, 0.95, 1.0])
    assert calibration_error(scores, labels) == pytest.approx(0.5 * 0.05 + 0.5 * 0.475)
