"""Puzzles with a product of two pairs as cases: an image, and the plan that solves it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright_math24.answer import check
from casewright_math24.cards import render_card
from casewright_math24.decomposition import (
    Class,
    Decomposition,
    decomposable_problems,
    decompositions,
)
from casewright_math24.latent import UNITS, Latent
from casewright_math24.prompts import question
from casewright_math24.puzzle import GOAL, Problem, problem_of
from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, Facet
from casewright.stores.facet import Components

#: Reads a card.
Read = Callable[[bytes], Problem]


def puzzle_schema(read: Read, latent: Latent) -> CaseSchema:
    """Return the schema: one component, a card's image, compared by the latent of its numbers.

    Args:
        read: T: from an image to its numbers.
        latent: L: from numbers to what is compared.
    """

    def embed(problems: Sequence[Components]) -> NDArray[np.float32]:
        return latent.vectors([numbers_of(problem, read) for problem in problems])

    card = Facet(
        name="card",
        components=("card",),
        dimension=UNITS,
        embed_case=embed,
        embed_query=embed,
        describe=lambda problem: question(numbers_of(problem, read)),
        model=latent.name,
        takes_text=False,
    )
    return CaseSchema("math24", (card,), support=case_text, verify=proved)


def puzzle_case(problem: Problem) -> Case:
    """Return a puzzle with its products of two pairs as a case, its card in the plain style.

    Raises:
        InputError: It has none.
    """
    found = decompositions(problem)
    if not found:
        raise InputError(f"{problem} has no product of two pairs that is {GOAL}.")
    return solved_case(card_image(problem), problem, found)


def solved_case(image: bytes, problem: Problem, found: Sequence[Decomposition]) -> Case:
    """Return a card with what solves it as a case."""
    return Case(
        problem={"card": Binary(media_type(image), image)},
        solution={
            "plans": [list(one.kind) for one in found],
            "expressions": [one.expression for one in found],
            "text": "; or ".join(told(problem, one) for one in found),
        },
        result=GOAL,
        metadata={"numbers": list(problem), "puzzle": puzzle_key(problem)},
    )


def puzzle_key(problem: Problem) -> str:
    """Return what all cases of a puzzle have as the metadata field ``puzzle``."""
    return " ".join(map(str, problem))


def puzzle_cases() -> list[Case]:
    """Return all 527 puzzles with a product of two pairs as cases."""
    return [puzzle_case(problem) for problem in decomposable_problems()]


def card_image(problem: Sequence[int]) -> bytes:
    """Return a card in the plain style as a PNG file."""
    made = io.BytesIO()
    render_card(problem).save(made, format="PNG")
    return made.getvalue()


def media_type(image: bytes) -> str:
    """Return an image file's IANA media type."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as opened:
        return opened.get_format_mimetype() or "image/png"


def numbers_of(problem: Components, read: Read) -> Problem:
    """Return the numbers on a problem's card.

    Raises:
        InputError: It is no image, or shows no card.
    """
    card = problem.get("card")
    if not isinstance(card, Binary):
        raise InputError(f"{card!r:.80} is no card. Give its image as a Binary.")
    return read(card.read())


def plans_of(case: Case) -> list[Class]:
    """Return a case's plans: larger factors with the places of their pairs."""
    return [(larger, first, last) for larger, first, last in case.solution["plans"]]


def told(problem: Problem, one: Decomposition) -> str:
    """Return a decomposition in words."""
    first, last = (problem[place] for place in one.pair)
    return (
        f"make {one.larger} of {first} and {last} ({one.made_by}), and {one.smaller} of the other "
        f"two ({one.rest_by}): {one.larger} * {one.smaller} = {GOAL}"
    )


def case_text(case: Case) -> str:
    """Return a case as text: the puzzle and how it is solved."""
    return f"{question(problem_of(case.metadata['numbers']))}: {case.solution['text']}"


def proved(case: Case) -> str | None:
    """Revise: return why a case may not be kept, ``None`` where its solution is proved."""
    given: Any = case.solution
    problem = problem_of(case.metadata.get("numbers", ()))
    expressions = given.get("expressions") if isinstance(given, dict) else None
    if not expressions:
        return "It has no expression."
    for expression in expressions:
        if not (found := check(str(expression), problem)).right:
            return found.why
    return None
