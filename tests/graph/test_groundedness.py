"""Sentences of an answer that the evidence does not support are marked."""

from __future__ import annotations

import pytest

from casewright.graph import ChatGenerator, GenerationRequest
from casewright.graph.groundedness import MARK, mark_unsupported, sentences
from tests.graph.helpers import QUESTION, ScriptedModel, evidence

KETTLE = "# The kettle\n\nIt has a warranty of two years from purchase. It holds 1.7 litres."
TEA = "Tea is served in the garden at four."
ITEMS = [evidence(1, KETTLE), evidence(2, TEA)]


@pytest.mark.parametrize(
    "text",
    [
        "The kettle has a warranty of two years [E1].",
        "The warranty of the kettle is two years. [E1] Tea is served at four [E2].",
        "- The kettle holds 1.7 litres [E1]\n- Tea: at four, in the garden [E2]",
        "Tea is served in the garden.",
        "The evidence does not say what the toaster costs.",
        "Für den Wasserkocher von Marlowe gilt eine Garantie über zwei Jahre [E1].",
        "No toasters found.",
    ],
)
def test_supported_sentence_stays_unchanged(text: str) -> None:
    assert mark_unsupported(text, ITEMS, ["No toasters found."]) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dogs like bones [E1].", f"Dogs like bones. {MARK}"),
        ("The kettle holds 1.9 litres [E1].", f"The kettle holds 1.9 litres. {MARK}"),
        (
            "Tea is served in the garden at four [E1].",
            f"Tea is served in the garden at four. {MARK}",
        ),
        ("Tea is at four [E2]. Dogs like bones.", f"Tea is at four [E2]. Dogs like bones. {MARK}"),
    ],
    ids=["other words", "other numbers", "other evidence", "no evidence"],
)
def test_unsupported_sentence_is_marked_and_loses_its_citation(text: str, expected: str) -> None:
    assert mark_unsupported(text, ITEMS) == expected


def test_sentence_is_not_marked_without_evidence() -> None:
    assert mark_unsupported("Dogs like bones.", []) == "Dogs like bones."


def test_sentences_keep_their_citations() -> None:
    text = "It is so [E1]. Or so. [E1][E2] Version 1.2 runs, e.g. here!\n- a list"
    assert sentences(text) == [
        "It is so [E1].",
        "Or so. [E1][E2]",
        "Version 1.2 runs, e.g. here!",
        "- a list",
    ]


def test_chat_generator_marks_unsupported_sentences_only_with_marks_true() -> None:
    model_text = "Tea is served at four [E2]. Dogs like bones [E1][E9]."
    for marks, expected in (
        (False, model_text),
        (True, f"Tea is served at four [E2]. Dogs like bones. {MARK}"),
    ):
        generator = ChatGenerator(ScriptedModel(script=model_text), marks=marks)
        assert generator.generate(GenerationRequest(QUESTION, ITEMS)).text == expected
