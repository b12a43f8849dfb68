"""The solver is exact, decompositions are all there, answers are checked, plans carried over."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright_math24.answer import check, final_answer
from casewright_math24.decomposition import (
    classes,
    decomposable_problems,
    decompositions,
)
from casewright_math24.prompts import KINDS, ROLE, prompt, second
from casewright_math24.puzzle import Problem, all_problems, problem_of
from casewright_math24.reuse import attempts
from casewright_math24.solver import solvable_problems, solve
from casewright.errors import InputError

NUMBERS = st.lists(st.integers(1, 13), min_size=4, max_size=4)


def by_brute_force(problem: Problem) -> bool:
    """Say whether 24 can be made, by trying every order, operation and bracket."""

    def apply(sign: str, a: Fraction | None, b: Fraction | None) -> Fraction | None:
        if a is None or b is None or (sign == "/" and not b):
            return None
        return {"+": a + b, "-": a - b, "*": a * b}.get(sign) if sign != "/" else a / b

    for a, b, c, d in set(permutations([Fraction(n) for n in problem])):
        for x, y, z in product("+-*/", repeat=3):
            made = (
                apply(z, apply(y, apply(x, a, b), c), d),
                apply(z, apply(x, a, apply(y, b, c)), d),
                apply(y, apply(x, a, b), apply(z, c, d)),
                apply(x, a, apply(z, apply(y, b, c), d)),
                apply(x, a, apply(y, b, apply(z, c, d))),
            )
            if 24 in made:
                return True
    return False


def test_1362_of_1820_puzzles_can_be_solved_and_each_solution_is_right() -> None:
    assert len(all_problems()) == 1820
    assert len(solvable_problems()) == 1362
    for problem in solvable_problems():
        solution = solve(problem)
        assert solution is not None
        assert check(solution, problem).right, solution


@settings(deadline=None, max_examples=15)
@given(NUMBERS)
def test_the_solver_finds_what_trying_everything_finds(numbers: list[int]) -> None:
    problem = problem_of(numbers)
    assert (solve(problem) is not None) == by_brute_force(problem)


def test_527_puzzles_have_a_product_of_two_pairs_and_each_is_right() -> None:
    assert len(decomposable_problems()) == 527
    for problem in decomposable_problems():
        for one in decompositions(problem):
            assert check(one.expression, problem).right, one
            made = check(f"({one.made_by}) * {one.smaller}", problem)
            assert "must use" in made.why
            assert sorted(problem[place] for place in one.pair) == [
                problem[place] for place in one.pair
            ]


def test_the_places_of_equal_numbers_are_the_first_ones() -> None:
    assert classes((1, 1, 1, 11)) == {(12, 0, 3)}
    assert classes((1, 1, 2, 6)) == {(12, 2, 3)}


@pytest.mark.parametrize("numbers", [(1, 2, 3), (0, 1, 2, 3), (1, 2, 3, 14), (1, 2, 3, 4.0), ()])
def test_what_is_no_puzzle_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="four whole numbers from 1 to 13"):
        solve(numbers)


@pytest.mark.parametrize(
    ("expression", "why"),
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
def test_an_answer_is_checked_exactly_and_told_what_is_wrong(expression: str, why: str) -> None:
    found = check(expression, (2, 3, 7, 8))
    assert found.right == (not why)
    assert why in found.why


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        ("I try.\nFinal Answer: (8 - 2) * (7 - 3) = 24", "(8 - 2) * (7 - 3)"),
        ("final answer: 8*3=24.", "8*3"),
        ("Final Answer: 1 = 24\nNo.\nFinal Answer: 2 × 12 = 24\nThanks", "2 * 12"),
        ("Final Answer: 8 \\* 3", "8 * 3"),
        ("The answer is 8 * 3 = 24", ""),
        ("", ""),
    ],
)
def test_the_last_final_answer_is_read(said: str, expression: str) -> None:
    assert final_answer(said) == expression


@given(st.text(max_size=300))
def test_any_text_is_an_answer_that_is_checked(said: str) -> None:
    assert not check(final_answer(said), (13, 13, 13, 13)).right


def test_a_plan_is_carried_over_to_the_same_places_first() -> None:
    # The case: 12 of the first and the last number, 2 of the others.
    assert list(attempts((1, 8, 10, 12), [(12, 0, 3)])) == ["(1 * 12) * (10 - 8)"]
    # Where that pair cannot make it, another one may.
    assert list(attempts((1, 1, 1, 11), [(12, 0, 1)])) == ["(1 + 11) * (1 + 1)"]


@given(NUMBERS, st.sampled_from([(24, 0, 1), (12, 0, 3), (8, 1, 2), (6, 2, 3)]))
def test_an_attempt_uses_each_number_once_and_is_right_where_its_factor_can_be_made(
    numbers: list[int], plan: tuple[int, int, int]
) -> None:
    problem = problem_of(numbers)
    (made,) = attempts(problem, [plan])
    can_be_made = any(kind[0] == plan[0] for kind in classes(problem))
    # Nothing is guessed: a plan that leads nowhere makes no expression.
    assert bool(made) == can_be_made
    assert check(made, problem).right == can_be_made


def test_queries_have_no_context_a_general_or_a_cases_plan() -> None:
    problem = (2, 3, 7, 8)
    none, general, top = (prompt(problem, kind, [(24, 1, 3)]) for kind in KINDS)
    assert "hint" not in none
    assert "24, 12, 8, 6" in general
    assert "Make 24 of 3 and 8" in top
    assert all("2 3 7 8" in text for text in (none, general, top))
    assert final_answer(ROLE) == "(13 + 9 + 2) * 1"
    told = second(check("8 * 3", problem))
    assert "8 * 3 is not right" in told
    assert "must use" in told
