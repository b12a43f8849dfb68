"""Verdicts that remain after the check of a judge's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from casewright.stores import Hit
from casewright.stores.feedback import Candidate, JudgeRequest, Verdicts, case_text, checked
from tests.stores.helpers import note, number_id


def candidate(number: int) -> Candidate:
    hit = Hit(note("a", id=number_id(number)), 0.5, 0.5, {}, np.zeros(2, dtype=np.float32))
    return Candidate(hit, "a", 0.5, 1)


REQUEST = JudgeRequest("q", [candidate(9)], [candidate(1), candidate(2)])
NUMBER: Any = 3
TEXT: Any = "x"
ID_1, ID_2 = number_id(1), number_id(2)


def test_verdicts_on_other_ids_than_the_candidates_are_dropped() -> None:
    answer = Verdicts(
        frozenset({ID_1, number_id(9), "x"}),
        {ID_1: 0.5, ID_2: float("nan"), number_id(9): 0.5, "x": 1.0},
        {"input": 3, "output": -1, "huge": 2**90},
        "key=abcdefgh1234\nand \ud800",
    )
    verdicts = checked(answer, REQUEST)
    assert verdicts.relevant == {ID_1}
    assert verdicts.probabilities == {ID_1: 0.5}
    assert verdicts.tokens == {"input": 3, "output": 0, "huge": 10**9}
    assert verdicts.note == "key=*** and ?"
    assert not verdicts.failed


@pytest.mark.parametrize(
    "answer",
    [None, [ID_1], {ID_1: True}, Verdicts, Verdicts(NUMBER), Verdicts(frozenset(), {ID_1: TEXT})],
    ids=["none", "list", "mapping", "class", "number", "text"],
)
def test_value_that_is_not_a_verdict_gives_no_relevant_case_and_a_note(answer: Any) -> None:
    verdicts = checked(answer, REQUEST)
    assert verdicts.relevant == frozenset()
    assert verdicts.note.startswith("The judge")
    assert not verdicts.failed


def test_failed_verdicts_give_no_relevant_case() -> None:
    verdicts = checked(Verdicts(frozenset({ID_1}), note="no quota", failed=True), REQUEST)
    assert (verdicts.relevant, verdicts.note, verdicts.failed) == (frozenset(), "no quota", True)


def test_case_text_has_problem_then_solution_without_repetition() -> None:
    assert case_text(note("a b", "c")) == "a b\nc"
    assert case_text(note("a b", "a b")) == "a b"
    assert case_text(note("a b")) == "a b"
    assert "7" in case_text(note(" ", {"n": 7}))
