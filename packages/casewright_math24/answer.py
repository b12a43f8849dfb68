"""Parses and checks answers: expressions of four numbers that must equal 24."""

from __future__ import annotations

import ast
import operator
import re
from dataclasses import dataclass
from fractions import Fraction

from casewright_math24.puzzle import GOAL, Problem

#: The text before the final expression of an answer.
FINAL = "Final Answer:"
#: Maximum number of characters in an expression.
_MAX_CHARACTERS = 200
#: A map from typographic operators and square brackets to the operators and brackets of Python.
SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "[": "(", "]": ")"})
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict on an answer."""

    expression: str  # the expression of the answer; empty if there is none
    right: bool  # True if the expression uses each number once and equals 24
    why: str = ""  # the error, as a sentence; empty for a right answer


def final_answer(text: str) -> str:
    """Return the expression after the last "Final Answer:", without "= 24"; else an empty text."""
    matches = list(re.finditer(re.escape(FINAL), text, re.IGNORECASE))
    if not matches:
        return ""
    line = text[matches[-1].end() :].strip().split("\n", 1)[0]
    # In Markdown, an asterisk is written as \*.
    plain = line.replace("\\*", "*").translate(SIGNS)
    left, _, right = plain.rpartition("=")
    return left.strip() if right.strip().rstrip(".") == str(GOAL) else plain.strip().rstrip(".")


def check(expression: str, problem: Problem) -> Check:
    """Return the verdict on an expression, which is evaluated exactly, with fractions."""
    if not expression:
        return Check("", False, f'There is no expression after "{FINAL}".')
    plain = expression.translate(SIGNS)
    try:
        if len(plain) > _MAX_CHARACTERS:
            raise ValueError
        value, numbers = read_expression(ast.parse(plain, mode="eval").body)
    except ZeroDivisionError:
        return Check(expression, False, "It divides by zero.")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Check(expression, False, "It is no expression of numbers with + - * / and brackets.")
    if sorted(numbers) != list(problem):
        used, expected = (", ".join(map(str, group)) for group in (sorted(numbers), problem))
        why = f"It uses {used}, and must use {expected}, each exactly once."
        return Check(expression, False, why)
    if value != GOAL:
        return Check(expression, False, f"It is {value}, not {GOAL}.")
    return Check(expression, True)


def read_expression(node: ast.expr) -> tuple[Fraction, list[int]]:
    """Return an expression's value and its numbers.

    Raises:
        ValueError: The expression has parts other than integers and + - * /.
        ZeroDivisionError: The expression divides by zero.
    """
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value), [node.value]
    if not isinstance(node, ast.BinOp) or (operation := _OPERATIONS.get(type(node.op))) is None:
        raise ValueError
    left, left_numbers = read_expression(node.left)
    right, right_numbers = read_expression(node.right)
    return operation(left, right), left_numbers + right_numbers
