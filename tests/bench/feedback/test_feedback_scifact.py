from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.feedback import scifact
from casewright.bench.feedback.scifact import scifact_set
from casewright.bench.feedback.sets import FeedbackSet, find_sets
from casewright.errors import InputError
from tests.bench.legal_helpers import write_lines

Line = dict[str, Any]


def abstracts() -> list[Line]:
    return [
        {"doc_id": number, "title": f"Enzyme {number}.", "abstract": [f"It cuts {number}.", "So."]}
        for number in range(40)
    ]


def claims() -> list[Line]:
    """Every third claim cites two abstracts, and every fourth none."""
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


def folder_of(folder: Path, one: list[Line], other: Sequence[Line] = ()) -> Path:
    write_lines(folder / "corpus.jsonl", abstracts())
    write_lines(folder / "claims_train-dev.jsonl", one)
    write_lines(folder / "claims_validation-dev.jsonl", other)
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scifact, "ABSTRACTS", 25)
    monkeypatch.setattr(scifact, "CLAIMS_PER_HALF", 4)


def titles(found: FeedbackSet) -> dict[str, set[str]]:
    names = {case.id: str(case.problem["title"]) for case in found.cases}
    return {
        question.text: {names[id_] for id_ in question.relevant} for question in found.questions
    }


def test_claims_of_all_files_that_cite_something_are_asked(tmp_path: Path) -> None:
    found = scifact_set(folder_of(tmp_path, claims()[:9], claims()[9:]))
    assert titles(found) == {
        str(claim["claim"]).strip(): {f"Enzyme {number}." for number in claim["cited_doc_ids"]}
        for claim in claims()
        if claim["cited_doc_ids"]
    }


def test_every_abstract_is_a_case_where_there_are_few(tmp_path: Path) -> None:
    found = scifact_set(folder_of(tmp_path, claims()))
    assert len(found.cases) == len(abstracts())
    case = next(case for case in found.cases if case.problem["title"] == "Enzyme 7.")
    assert case.problem["text"] == case.solution == "It cuts 7. So."


@pytest.mark.usefixtures("small")
def test_of_many_abstracts_those_that_are_needed_are_there_and_of_many_claims_some_of_both_halves(
    tmp_path: Path,
) -> None:
    found = scifact_set(folder_of(tmp_path, claims()))
    assert found.size() == {"cases": 25, "questions_training": 4, "questions_test": 4}
    assert all(
        question.relevant <= {case.id for case in found.cases} for question in found.questions
    )
    assert found.settings["abstracts_in_file"] == len(abstracts())


def test_order_of_files_and_lines_changes_nothing(tmp_path: Path) -> None:
    found = scifact_set(folder_of(tmp_path / "one", claims()[:9], claims()[9:]))
    other = scifact_set(folder_of(tmp_path / "two", claims()[::-1]))
    assert (other.cases, other.questions) == (found.cases, found.questions)


def test_order_of_the_cases_tells_nothing_of_what_is_cited(tmp_path: Path) -> None:
    found = scifact_set(folder_of(tmp_path / "one", claims()))
    other = [claim | {"cited_doc_ids": [39 - claim["id"]]} for claim in claims()]
    assert scifact_set(folder_of(tmp_path / "two", other)).cases == found.cases


@pytest.mark.parametrize("below", ["", "scifact"], ids=["the-folder", "the-one-above"])
def test_set_is_found_in_a_folder_and_in_the_one_above(tmp_path: Path, below: str) -> None:
    folder_of(tmp_path / below, claims())
    (found,) = find_sets(tmp_path, only="scifact")
    assert (found.name, found.kind, len(found.questions)) == ("scifact", "paragraphs", 15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 1}, "two claims have the id 'scifact/1'"),
        ({"cited_doc_ids": [77]}, "cite 1 abstracts .* such as 77"),
        ({"claim": 3}, r"line 3: this is no line of SciFact"),
    ],
    ids=["same-id", "not-there", "other-form"],
)
def test_claim_that_cannot_be_used_is_an_input_error(
    tmp_path: Path, change: Line, said: str
) -> None:
    lines = claims()
    lines[2] |= change
    with pytest.raises(InputError, match=said):
        scifact_set(folder_of(tmp_path, lines))


def test_claims_that_cite_nothing_are_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no claim cites an abstract"):
        scifact_set(folder_of(tmp_path, [claim | {"cited_doc_ids": []} for claim in claims()]))
