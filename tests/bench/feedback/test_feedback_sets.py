from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.bench.feedback.multihop import feedback_set
from casewright.bench.feedback.sets import FeedbackQuestion, FeedbackSet, find_sets
from casewright.bench.feedback.split import is_training
from casewright.errors import InputError
from tests.bench.legal_helpers import TOWNS, Item, multihop_folder, town_items, write_lines


def read(folder: Path, items: list[Item]) -> FeedbackSet:
    return feedback_set(write_lines(folder / "items.jsonl", items), "towns")


def test_every_paragraph_is_a_case_and_its_text_the_solution(tmp_path: Path) -> None:
    items = town_items()
    items[0]["context"].append(["Quorn", ["Quorn is a village.", "It is small."]])
    cases = {str(case.problem["title"]): case for case in read(tmp_path, items).cases}
    assert set(cases) == {"Quorn", *(town for pair in TOWNS for town in pair)}
    assert cases["Quorn"].problem["text"] == "Quorn is a village. It is small."
    assert cases["Quorn"].solution == cases["Quorn"].problem["text"]


def test_relevant_are_all_supporting_paragraphs_of_two_or_more(tmp_path: Path) -> None:
    items = town_items()
    items[0]["supporting_facts"] += [[town, 0] for town in TOWNS[1]]
    found = read(tmp_path, items)
    titles = {case.id: case.problem["title"] for case in found.cases}
    asked = [{titles[case] for case in question.relevant} for question in found.questions]
    assert asked == [{*TOWNS[0], *TOWNS[1]}, *(set(pair) for pair in TOWNS[1:])]


def test_cases_are_the_same_whatever_questions_and_labels_are(tmp_path: Path) -> None:
    other = town_items()
    for item in other:
        item["question"] = f"Why is it not {item['answer']}?"
        item["supporting_facts"] = [[title, 0] for title, _ in item["context"][:2]]
    other.reverse()
    changed = read(tmp_path, other)
    found = read(tmp_path, town_items())
    assert changed.cases == found.cases
    assert changed.questions != found.questions


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"_id": "item-1"}, "two questions have the id 'item-1'"),
        ({"_id": ""}, "has no id"),
        ({"supporting_facts": [["Adelton", 0]]}, "has 1 supporting paragraphs"),
        ({"context": "none"}, "line 1"),
    ],
    ids=["same-id", "no-id", "one-paragraph", "other-form"],
)
def test_item_that_cannot_be_used_is_an_input_error(
    tmp_path: Path, change: Item, said: str
) -> None:
    items = town_items()
    items[0] |= change
    with pytest.raises(InputError, match=said):
        read(tmp_path, items)


def test_file_without_a_question_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no question"):
        read(tmp_path, [])


@settings(max_examples=30)
@given(st.text())
def test_half_follows_from_the_id_alone(question_id: str) -> None:
    question = FeedbackQuestion(question_id, "?", frozenset("ab"))
    found = FeedbackSet("one", "code", [], [question])
    assert found.half(training=is_training(question_id)) == [question]
    assert found.half(training=not is_training(question_id)) == []


def test_halves_are_those_that_were_published() -> None:
    # Another rule would let a trained judge be measured by what it was trained with.
    training = [is_training(f"question-{number}") for number in range(12)]
    assert "".join("10"[not half] for half in training) == "101010110111"


def test_halves_are_about_as_many() -> None:
    assert 450 < sum(is_training(str(number)) for number in range(1000)) < 550


@pytest.mark.parametrize("below", ["", "multihop"], ids=["the-folder", "the-one-above"])
def test_sets_are_found_in_a_folder_and_in_the_one_above(tmp_path: Path, below: str) -> None:
    multihop_folder(tmp_path)
    folder = tmp_path if below == "" else tmp_path / below
    for name in ("hotpotqa", "musique"):
        (found,) = find_sets(folder, only=name)
        assert (found.name, found.kind, len(found.questions)) == (name, "paragraphs", len(TOWNS))


def test_limit_takes_as_many_of_both_halves(tmp_path: Path) -> None:
    whole = find_sets(multihop_folder(tmp_path), only="musique")[0]
    (found,) = find_sets(tmp_path, only="musique", limit=4)
    assert found.half(training=True) == whole.half(training=True)[:2]
    assert found.half(training=False) == whole.half(training=False)[:2]
    assert found.cases == whole.cases


def test_limit_that_leaves_a_half_empty_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="larger --limit"):
        find_sets(multihop_folder(tmp_path), only="musique", limit=1)


def test_folder_that_is_not_there_or_holds_no_set_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        find_sets(tmp_path / "none")
    with pytest.raises(InputError, match="holds no set of questions"):
        find_sets(tmp_path)
    multihop_folder(tmp_path)
    with pytest.raises(InputError, match="There are: hotpotqa, musique, code, code_described"):
        find_sets(tmp_path, only="2wikimultihop")
