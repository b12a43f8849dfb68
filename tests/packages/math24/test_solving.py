"""Decompositions are complete, answers are checked, plans are reused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright_math24.answer import check, final_answer
from casewright_math24.decomposition import (
    attempts,
    classes,
    decomposable_problems,
    decompositions,
)
from casewright_math24.prompts import CONTEXT_KINDS, ROLE, correction, prompt
from casewright_math24.puzzle import problem_of

NUMBERS = st.lists(st.integers(1, 13), min_size=4, max_size=4)


def test_527_puzzles_have_a_product_of_two_pairs_and_each_is_right() -> None:
    assert len(decomposable_problems()) == 527
    for problem in decomposable_problems():
        for solution in decompositions(problem):
            assert check(solution.expression, problem).right, solution
            verdict = check(f"({solution.larger_expression}) * {solution.smaller}", problem)
            assert "must use" in verdict.why
            assert sorted(problem[index] for index in solution.pair) == [
                problem[index] for index in solution.pair
            ]


def test_classes_use_the_first_positions_of_equal_numbers() -> None:
    assert classes((1, 1, 1, 11)) == {(12, 0, 3)}
    assert classes((1, 1, 2, 6)) == {(12, 2, 3)}


@pytest.mark.parametrize("numbers", [(1, 2, 3), (0, 1, 2, 3), (1, 2, 3, 14), (1, 2, 3, 4.0), ()])
def test_invalid_puzzle_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="four whole numbers from 1 to 13"):
        problem_of(numbers)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(8 - 2) * (7 - 3)", ""),
        ("(8 − 2) × (7 − 3)", ""),
        ("8 * 3", "must use 2, 3, 7, 8, each exactly once"),
        ("(8 - 2) * (7 - 3) * 1", "must use"),
        ("8 + 2 + 7 + 3", "It is 20, not 24"),
        ("8 / (2 + 7 - 3 * 3)", "divides by zero"),
        ("8 / 7 + 3 / 2", "It is 37/14, not 24"),
        ("__import__('os')", "no expression"),
        ("8 ** 2", "no expression"),
        ("-8 + 2", "no expression"),
        ("8.0 * 3", "no expression"),
        ("(" * 150 + "8", "no expression"),
        ("8 +" * 400, "no expression"),
        ("", "There is no expression"),
    ],
)
def test_answer_check_is_exact_and_states_what_is_wrong(expression: str, reason: str) -> None:
    verdict = check(expression, (2, 3, 7, 8))
    assert verdict.right == (not reason)
    assert reason in verdict.why


@pytest.mark.parametrize(
    ("answer", "expression"),
    [
        ("I try.\nFinal Answer: (8 - 2) * (7 - 3) = 24", "(8 - 2) * (7 - 3)"),
        ("final answer: 8*3=24.", "8*3"),
        ("Final Answer: 1 = 24\nNo.\nFinal Answer: 2 × 12 = 24\nThanks", "2 * 12"),
        ("Final Answer: 8 \\* 3", "8 * 3"),
        ("The answer is 8 * 3 = 24", ""),
        ("", ""),
    ],
)
def test_last_final_answer_of_a_text_is_read(answer: str, expression: str) -> None:
    assert final_answer(answer) == expression


@given(st.text(max_size=300))
def test_any_text_can_be_checked_as_an_answer(answer: str) -> None:
    assert not check(final_answer(answer), (13, 13, 13, 13)).right


def test_plan_is_applied_to_the_same_positions_first() -> None:
    # The case: 12 of the first and the last number, 2 of the others.
    assert list(attempts((1, 8, 10, 12), [(12, 0, 3)])) == ["(1 * 12) * (10 - 8)"]
    # If that pair cannot make the factor, another pair may.
    assert list(attempts((1, 1, 1, 11), [(12, 0, 1)])) == ["(1 + 11) * (1 + 1)"]


@given(NUMBERS, st.sampled_from([(24, 0, 1), (12, 0, 3), (8, 1, 2), (6, 2, 3)]))
def test_attempt_is_right_exactly_when_its_factor_can_be_made(
    numbers: list[int], plan: tuple[int, int, int]
) -> None:
    problem = problem_of(numbers)
    (expression,) = attempts(problem, [plan])
    can_be_made = any(kind[0] == plan[0] for kind in classes(problem))
    # A plan without a solution makes no expression.
    assert bool(expression) == can_be_made
    assert check(expression, problem).right == can_be_made


def test_prompt_contains_no_hint_a_general_hint_or_the_plan_of_a_case() -> None:
    problem = (2, 3, 7, 8)
    plain, general, top = (prompt(problem, kind, [(24, 1, 3)]) for kind in CONTEXT_KINDS)
    assert "hint" not in plain
    assert "24, 12, 8, 6" in general
    assert "Make 24 of 3 and 8" in top
    assert all("2 3 7 8" in text for text in (plain, general, top))
    assert final_answer(ROLE) == "(13 + 9 + 2) * 1"
    message = correction(check("8 * 3", problem))
    assert "8 * 3 is not right" in message
    assert "must use" in message
