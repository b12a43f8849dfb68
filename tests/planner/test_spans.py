from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewright.planner import is_span

QUESTION = "Do you sell Wool-Blend socks (size 42), or the Barber's Pride trimmer?"


@pytest.mark.parametrize(
    "text",
    [
        *("Do", "sell", "wool-blend socks", "socks", "Wool-Blend", "42", "barber's pride"),
        *("or the", "size 42", "trimmer", "SELL WOOL-BLEND", "wool", "blend", "Barber"),
        "42), or the",
    ],
)
def test_is_span_accepts_whole_adjacent_words_in_any_case(text: str) -> None:
    assert is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["you  sell", " you sell ", "you\nsell", "you\tsell"])
def test_is_span_ignores_the_amount_of_space(text: str) -> None:
    assert is_span(text, QUESTION)
    assert is_span("you sell", f"do {text} it")


@pytest.mark.parametrize(
    "text", ["ock", "sock", "ocks", "ell wool", "sell wo", "4", "o you", "Bar"]
)
def test_is_span_refuses_parts_of_words(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize(
    "text", ["socks (", "(size 42", "size 42)", "trimmer?", ", or", "'s Pride", "-blend", "?", "()"]
)
def test_is_span_refuses_punctuation_at_the_ends(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_is_span_refuses_empty_and_blank_text(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["do sell", "socks sell", "wool socks", "boots", "you sell boots"])
def test_is_span_refuses_words_that_are_not_adjacent(text: str) -> None:
    assert not is_span(text, QUESTION)


def test_is_span_finds_a_word_after_its_occurrence_inside_another_word() -> None:
    assert is_span("art", "smart art")
    assert not is_span("art", "smart party")


def test_is_span_finds_an_occurrence_that_overlaps_part_of_a_word() -> None:
    assert is_span("a a", "ba a a")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("हिन्दी", "क्या हिन्दी किताबें हैं?"),
        ("किताबें हैं", "क्या हिन्दी किताबें हैं?"),
        ("cafe\u0301", "a cafe\u0301 table"),
        ("กี่", "ราคา กี่ บาท"),
    ],
)
def test_is_span_accepts_words_with_combining_marks(text: str, question: str) -> None:
    assert is_span(text, question)


def test_is_span_refuses_a_word_without_its_combining_mark() -> None:
    assert not is_span("cafe", "a cafe\u0301 table")


@pytest.mark.parametrize("text", ["Straße", "STRASSE", "ΣΟΦΟΣ", "σοφος"])
def test_is_span_folds_case_as_unicode_does(text: str) -> None:
    assert is_span(text, "die straße σοφοσ")


WORDS = st.sampled_from(["a", "b", "ab", "ba"])


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS, min_size=1, max_size=3))
@example(["ba", "a", "a"], ["a", "a"])
def test_is_span_accepts_exactly_the_runs_of_words(words: list[str], run: list[str]) -> None:
    runs = [words[i : i + len(run)] for i in range(len(words))]
    assert is_span(" ".join(run), " ".join(words)) == (run in runs)


@settings(deadline=None)
@given(st.text(max_size=12), st.text(max_size=40))
def test_is_span_accepts_no_ascii_punctuation_at_the_ends_of_any_text(
    text: str, question: str
) -> None:
    if is_span(text, question):
        stripped = text.strip()
        assert stripped
        assert not re.match(r"[!-/:-@\[-^`{-~]", stripped[0])
        assert not re.match(r"[!-/:-@\[-^`{-~]", stripped[-1])
