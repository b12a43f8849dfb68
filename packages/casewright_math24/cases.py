"""Cases of Math-24: the problem is a card's image, and each solution is a product of two pairs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, Facet
from casewright.stores.facet import Components
from casewright_math24.answer import check
from casewright_math24.card_reader import CardReader
from casewright_math24.cards import render_card
from casewright_math24.decomposition import Class, Decomposition, decompositions
from casewright_math24.latent import LatentNetwork
from casewright_math24.prompts import question
from casewright_math24.puzzle import GOAL, Problem, problem_of
from casewright_mcbr.layers import LATENT_SIZE
from casewright_mcbr.picture import media_type


def puzzle_schema(reader: CardReader, network: LatentNetwork) -> CaseSchema:
    """Return the schema of cards; ``reader`` makes text (MCBR-RAG's T), ``network`` latents (L)."""

    def numbers_of(components: Components) -> Problem:
        card = components.get("card")
        if not isinstance(card, Binary):
            raise InputError(f"{card!r:.80} is not a card. Give its image as a Binary.")
        return problem_of(reader.read(card.read()).numbers)

    def embed(cards: Sequence[Components]) -> NDArray[np.float32]:
        return network.vectors([numbers_of(components) for components in cards])

    card = Facet(
        name="card",
        components=("card",),
        dimension=LATENT_SIZE,
        embed_case=embed,
        embed_query=embed,
        describe=lambda components: question(numbers_of(components)),
        model=network.name,
        takes_text=False,
    )
    return CaseSchema("math24", (card,), support=case_text, verify=flaw_of)


def puzzle_case(problem: Problem) -> Case:
    """Return a puzzle as a case; raise ``InputError`` if no product of two pairs is 24."""
    solutions = decompositions(problem)
    if not solutions:
        raise InputError(f"{problem} has no product of two pairs that is {GOAL}.")
    return solved_case(card_image(problem), problem, solutions)


def solved_case(image: bytes, problem: Problem, solutions: Sequence[Decomposition]) -> Case:
    """Return the case of a card's image, with the puzzle's sorted numbers and the solutions."""
    return Case(
        problem={"card": Binary(media_type(image), image)},
        solution={
            "plans": [list(solution.kind) for solution in solutions],
            "expressions": [solution.expression for solution in solutions],
            "text": "; or ".join(_solution_text(problem, solution) for solution in solutions),
        },
        result=GOAL,
        metadata={"numbers": list(problem), "puzzle": puzzle_key(problem)},
    )


def puzzle_key(problem: Problem) -> str:
    """Return the value of the metadata field ``puzzle``, which identifies a puzzle."""
    return " ".join(map(str, problem))


def card_image(problem: Sequence[int]) -> bytes:
    """Return the bytes of a PNG file that shows a card in the plain style."""
    buffer = io.BytesIO()
    render_card(problem).save(buffer, format="PNG")
    return buffer.getvalue()


def plans_of(case: Case) -> list[Class]:
    """Return a case's plans, which are the classes of its solutions."""
    return [(larger, first, second) for larger, first, second in case.solution["plans"]]


def _solution_text(problem: Problem, solution: Decomposition) -> str:
    first, second = (problem[index] for index in solution.pair)
    return (
        f"make {solution.larger} of {first} and {second} ({solution.larger_expression}), and "
        f"{solution.smaller} of the other two ({solution.smaller_expression}): "
        f"{solution.larger} * {solution.smaller} = {GOAL}"
    )


def case_text(case: Case) -> str:
    """Return a case as text: the puzzle and its solutions."""
    return f"{question(problem_of(case.metadata['numbers']))}: {case.solution['text']}"


def flaw_of(case: Case) -> str | None:
    """Return why a case must be refused, or ``None`` if all its expressions are right."""
    solution: Any = case.solution
    problem = problem_of(case.metadata.get("numbers", ()))
    expressions = solution.get("expressions") if isinstance(solution, dict) else None
    if not expressions:
        return "It has no expression."
    verdicts = (check(str(expression), problem) for expression in expressions)
    return next((verdict.why for verdict in verdicts if not verdict.right), None)
