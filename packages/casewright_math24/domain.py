"""The domain Math-24: four numbers on a card become 24, by the plans of like cards (MCBR-RAG)."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, OpenDomain
from casewright_math24.answerer import CardAnswer, CardAnswerer
from casewright_math24.card_reader import WEIGHTS, CardReader, shipped_reader
from casewright_math24.cases import (
    card_image,
    case_text,
    puzzle_cases,
    puzzle_schema,
)
from casewright_math24.latent import FILE, shipped_latent
from casewright_math24.page import page_of
from casewright_math24.puzzle import Problem, problem_of
from casewright.domains.own_answer import IMAGE_OPTIONS, OwnAnswer, OwnRequest
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.plan_cases import plan_case
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox, ToolExample, tool_from_function

#: What makes cases of puzzles: other cases, where one of these changes.
MAKERS = ("cards.py", "cases.py", "decomposition.py", "domain.py", "solver.py")
#: Questions with their plans; the domain has one tool.
QUERIES = (
    "How do I make 24 of 2, 3, 7 and 8?",
    "Solve the Math-24 puzzle 1 8 10 12",
    "24 out of 3 4 6 9?",
    "I have the numbers 2, 4, 8 and 10. What makes 24?",
)


def open_math24(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open the stores in a folder, building them where needed.

    Raises:
        InputError: The networks that ship are not there.
    """
    reader = shipped_reader()

    def read(image: bytes) -> Problem:
        return problem_of(reader.read(image).numbers)

    parts = {
        "math24": (puzzle_schema(read, shipped_latent()), puzzle_cases),
        "plans": (plan_schema(encoder), lambda: [plan_case(query) for query in queries()]),
    }
    made_of = [*(files("casewright_math24") / name for name in MAKERS), WEIGHTS, FILE]
    wanted = digest(made_of, [schema for schema, _ in parts.values()])
    stores = open_built(folder, "math24", wanted, parts, anew=anew)
    return OpenDomain(math24_toolbox(stores["math24"], reader), stores["plans"], stores)


def math24_toolbox(store: CaseStore, reader: CardReader) -> Toolbox:
    """Return the domain's one tool."""
    answerer = CardAnswerer(store, reader)

    def make_24(query: str) -> list[dict[str, Any]]:
        numbers = [int(text) for text in re.findall(r"\d+", query)]
        # A question may name the goal, too.
        if len(numbers) > 4 and 24 in numbers:
            numbers.remove(24)
        problem = problem_of(numbers)
        found = answerer.answer(card_image(problem))
        told = lines_of(found)[1:]
        # What was made of the numbers first, then the cases that it was made by.
        return [{"evidence": line} for line in sorted(told, key=_of_case)]

    return Toolbox(
        [
            tool_from_function(
                make_24,
                description="Makes 24 of four numbers by the plans of like puzzles, and checks it.",
                results=("evidence",),
                example=ToolExample(QUERIES[0], "s1 = make_24(query=question)"),
            )
        ]
    )


def queries() -> list[AnnotatedQuery]:
    """Return the annotated queries."""
    return [
        AnnotatedQuery.read(
            {
                "id": f"math24-{number}",
                "query": query,
                "plan": "s1 = make_24(query=question)",
                "class": "make_24",
            }
        )
        for number, query in enumerate(QUERIES)
    ]


def answer_card(opened: OpenDomain, request: OwnRequest) -> OwnAnswer:
    """Answer a card.

    Raises:
        InputError: The image cannot be read, or shows no card; nothing is retained then.
    """
    image = request.image
    answerer = CardAnswerer(opened.stores["math24"], shipped_reader(), request.chat, request.name)
    found = answerer.answer(image, retain="retain" in request.options)
    told = {
        "numbers": list(found.reading.numbers),
        "confidence": found.reading.confidence,
        "cases": [
            {"id": hit.case.id, "score": hit.score, "text": case_text(hit.case)}
            for hit in found.hits
        ],
        "answered_by": found.answered_by,
        "attempts": [
            {"expression": one.expression, "right": one.right, "why": one.why}
            for one in found.checks
        ],
        "right": found.right,
        "retained": None if found.retained is None else found.retained.outcome,
    }
    page = page_of(found, image.read_bytes())
    return OwnAnswer(lines_of(found), told, page, found.right).save_page(request)


def lines_of(found: CardAnswer) -> list[str]:
    """Return an answer in words."""
    lines = [
        f"Read: {' '.join(map(str, found.reading.numbers))} ({found.reading.confidence:.3f} sure)"
    ]
    lines += [f"Case, {hit.score:.3f} alike: {case_text(hit.case)}" for hit in found.hits]
    for number, one in enumerate(found.checks, 1):
        verdict = "right: each number once, and 24" if one.right else one.why
        shown = f"{one.expression} = 24. " if one.expression else ""
        lines.append(f"Attempt {number}, by {found.answered_by}: {shown}{verdict}")
    if found.retained is not None:
        lines.append(f"As a case: {found.retained.outcome}.")
    return lines


def _of_case(line: str) -> bool:
    return line.startswith("Case")


DOMAIN = Domain(
    name="math24",
    description="A card shows four numbers, of which 24 is to be made.",
    questions=QUERIES[:2],
    open=open_math24,
    queries=queries,
    options=IMAGE_OPTIONS,
    answer=answer_card,
)
