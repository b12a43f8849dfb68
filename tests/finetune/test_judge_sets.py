"""The sets of labelled questions about paragraphs: multi-hop questions and SciFact's claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.judge_sets import paragraphs
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.paragraphs import multihop_set, scifact_set
from casewright.finetune.judge_sets.sets import FeedbackSet, LabelledQuestion, is_training
from tests.support.multihop import TOWNS, Item, multihop_folder, town_items, write_lines

Line = dict[str, Any]


def read_multihop(folder: Path, items: list[Item]) -> FeedbackSet:
    return multihop_set(write_lines(folder / "items.jsonl", items), "towns")


def test_multihop_set_makes_every_paragraph_a_case_with_its_text_as_solution(
    tmp_path: Path,
) -> None:
    items = town_items()
    items[0]["context"].append(["Quorn", ["Quorn is a village.", "It is small."]])
    cases = {str(case.problem["title"]): case for case in read_multihop(tmp_path, items).cases}
    assert set(cases) == {"Quorn", *(town for pair in TOWNS for town in pair)}
    assert cases["Quorn"].problem["text"] == "Quorn is a village. It is small."
    assert cases["Quorn"].solution == cases["Quorn"].problem["text"]


def test_relevant_cases_are_all_supporting_paragraphs_of_a_question(tmp_path: Path) -> None:
    items = town_items()
    items[0]["supporting_facts"] += [[town, 0] for town in TOWNS[1]]
    towns = read_multihop(tmp_path, items)
    titles = {case.id: case.problem["title"] for case in towns.cases}
    relevant = [{titles[case] for case in question.relevant} for question in towns.questions]
    assert relevant == [{*TOWNS[0], *TOWNS[1]}, *(set(pair) for pair in TOWNS[1:])]


def test_cases_of_a_multihop_set_do_not_depend_on_questions_and_labels(tmp_path: Path) -> None:
    items = town_items()
    for item in items:
        item["question"] = f"Why is it not {item['answer']}?"
        item["supporting_facts"] = [[title, 0] for title, _ in item["context"][:2]]
    items.reverse()
    changed = read_multihop(tmp_path, items)
    original = read_multihop(tmp_path, town_items())
    assert changed.cases == original.cases
    assert changed.questions != original.questions


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"_id": "item-1"}, "two questions have the id 'item-1'"),
        ({"_id": ""}, "has no id"),
        ({"supporting_facts": [["Adelton", 0]]}, "has 1 supporting paragraphs"),
        ({"context": "none"}, "line 1"),
    ],
    ids=["same-id", "no-id", "one-paragraph", "other-form"],
)
def test_invalid_multihop_item_raises_input_error(tmp_path: Path, change: Item, error: str) -> None:
    items = town_items()
    items[0] |= change
    with pytest.raises(InputError, match=error):
        read_multihop(tmp_path, items)


def test_multihop_file_without_a_question_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no question"):
        read_multihop(tmp_path, [])


@settings(max_examples=30)
@given(st.text())
def test_half_of_a_question_depends_only_on_its_id(question_id: str) -> None:
    question = LabelledQuestion(question_id, "?", frozenset("ab"))
    feedback_set = FeedbackSet("one", "code", [], [question])
    assert feedback_set.half(training=is_training(question_id)) == [question]
    assert feedback_set.half(training=not is_training(question_id)) == []


def test_training_half_equals_the_published_one() -> None:
    # With another rule, a published judge would be measured on questions of its training.
    training = [is_training(f"question-{number}") for number in range(12)]
    assert "".join("10"[not half] for half in training) == "101010110111"


def test_training_and_test_halves_have_about_the_same_size() -> None:
    assert 450 < sum(is_training(str(number)) for number in range(1000)) < 550


@pytest.mark.parametrize("below", ["", "multihop"], ids=["the-folder", "the-one-above"])
def test_multihop_sets_are_found_in_a_folder_and_in_the_one_above(
    tmp_path: Path, below: str
) -> None:
    multihop_folder(tmp_path)
    folder = tmp_path if below == "" else tmp_path / below
    for name in ("hotpotqa", "musique"):
        (towns,) = find_sets(folder, only=name)
        assert (towns.name, towns.kind, len(towns.questions)) == (name, "paragraphs", len(TOWNS))


def test_limit_takes_the_same_number_of_questions_of_both_halves(tmp_path: Path) -> None:
    unlimited = find_sets(multihop_folder(tmp_path), only="musique")[0]
    (limited,) = find_sets(tmp_path, only="musique", limit=4)
    assert limited.half(training=True) == unlimited.half(training=True)[:2]
    assert limited.half(training=False) == unlimited.half(training=False)[:2]
    assert limited.cases == unlimited.cases


def test_limit_that_leaves_a_half_empty_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="larger --limit"):
        find_sets(multihop_folder(tmp_path), only="musique", limit=1)


def test_missing_folder_or_folder_without_a_set_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        find_sets(tmp_path / "none")
    with pytest.raises(InputError, match="holds no set of questions"):
        find_sets(tmp_path)
    multihop_folder(tmp_path)
    with pytest.raises(InputError, match="here, only hotpotqa, musique, code, code_described"):
        find_sets(tmp_path, only="2wikimultihop")


def abstracts() -> list[Line]:
    return [
        {"doc_id": number, "title": f"Enzyme {number}.", "abstract": [f"It cuts {number}.", "So."]}
        for number in range(40)
    ]


def claims() -> list[Line]:
    """Return claims; every third cites two abstracts, and every fourth none."""
    return [
        {
            "id": number,
            "claim": f"Enzyme {number} cuts. ",
            "cited_doc_ids": [number, number + 20][
                : 0 if number % 4 == 0 else 1 + (not number % 3)
            ],
        }
        for number in range(20)
    ]


def write_set(folder: Path, train: list[Line], test: Sequence[Line] = ()) -> Path:
    write_lines(folder / "corpus.jsonl", abstracts())
    write_lines(folder / "claims_train-dev.jsonl", train)
    write_lines(folder / "claims_validation-dev.jsonl", test)
    return folder


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paragraphs, "MAX_ABSTRACTS", 25)
    monkeypatch.setattr(paragraphs, "MAX_CLAIMS", 4)


def titles(scifact: FeedbackSet) -> dict[str, set[str]]:
    names = {case.id: str(case.problem["title"]) for case in scifact.cases}
    return {
        question.text: {names[id_] for id_ in question.relevant} for question in scifact.questions
    }


def test_scifact_questions_are_the_claims_of_all_files_with_citations(tmp_path: Path) -> None:
    scifact = scifact_set(write_set(tmp_path, claims()[:9], claims()[9:]))
    assert titles(scifact) == {
        str(claim["claim"]).strip(): {f"Enzyme {number}." for number in claim["cited_doc_ids"]}
        for claim in claims()
        if claim["cited_doc_ids"]
    }


def test_small_scifact_set_contains_every_abstract_as_a_case(tmp_path: Path) -> None:
    scifact = scifact_set(write_set(tmp_path, claims()))
    assert len(scifact.cases) == len(abstracts())
    case = next(case for case in scifact.cases if case.problem["title"] == "Enzyme 7.")
    assert case.problem["text"] == case.solution == "It cuts 7. So."


@pytest.mark.usefixtures("small_limits")
def test_large_scifact_set_is_sampled_and_keeps_the_cited_abstracts(
    tmp_path: Path,
) -> None:
    scifact = scifact_set(write_set(tmp_path, claims()))
    assert scifact.size() == {"cases": 25, "questions_training": 4, "questions_test": 4}
    assert all(
        question.relevant <= {case.id for case in scifact.cases} for question in scifact.questions
    )
    assert scifact.origin["abstracts_in_file"] == len(abstracts())


def test_scifact_set_does_not_depend_on_the_order_of_files_and_lines(tmp_path: Path) -> None:
    first = scifact_set(write_set(tmp_path / "one", claims()[:9], claims()[9:]))
    second = scifact_set(write_set(tmp_path / "two", claims()[::-1]))
    assert (second.cases, second.questions) == (first.cases, first.questions)


def test_order_of_scifact_cases_does_not_depend_on_citations(tmp_path: Path) -> None:
    scifact = scifact_set(write_set(tmp_path / "one", claims()))
    lines = [claim | {"cited_doc_ids": [39 - claim["id"]]} for claim in claims()]
    assert scifact_set(write_set(tmp_path / "two", lines)).cases == scifact.cases


@pytest.mark.parametrize("below", ["", "scifact"], ids=["the-folder", "the-one-above"])
def test_scifact_is_found_in_a_folder_and_in_the_one_above(tmp_path: Path, below: str) -> None:
    write_set(tmp_path / below, claims())
    (scifact,) = find_sets(tmp_path, only="scifact")
    assert (scifact.name, scifact.kind, len(scifact.questions)) == ("scifact", "paragraphs", 15)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"id": 1}, "two claims have the id 'scifact/1'"),
        ({"cited_doc_ids": [77]}, "cite 1 abstracts .* such as 77"),
        ({"claim": 3}, r"line 3: the line is not one of SciFact's claims"),
    ],
    ids=["same-id", "not-there", "other-form"],
)
def test_invalid_scifact_claim_raises_input_error(tmp_path: Path, change: Line, error: str) -> None:
    lines = claims()
    lines[2] |= change
    with pytest.raises(InputError, match=error):
        scifact_set(write_set(tmp_path, lines))


def test_scifact_claims_without_citations_raise_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no claim cites an abstract"):
        scifact_set(write_set(tmp_path, [claim | {"cited_doc_ids": []} for claim in claims()]))
