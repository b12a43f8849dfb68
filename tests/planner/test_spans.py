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
def test_whole_adjacent_words_in_any_case_are_a_span(text: str) -> None:
    assert is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["you  sell", " you sell ", "you\nsell", "you\tsell"])
def test_the_amount_of_space_does_not_count(text: str) -> None:
    assert is_span(text, QUESTION)
    assert is_span("you sell", f"do {text} it")


@pytest.mark.parametrize(
    "text", ["ock", "sock", "ocks", "ell wool", "sell wo", "4", "o you", "Bar"]
)
def test_parts_of_words_are_no_span(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize(
    "text", ["socks (", "(size 42", "size 42)", "trimmer?", ", or", "'s Pride", "-blend", "?", "()"]
)
def test_a_span_has_no_punctuation_at_its_ends(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_is_no_span(text: str) -> None:
    assert not is_span(text, QUESTION)


@pytest.mark.parametrize("text", ["do sell", "socks sell", "wool socks", "boots", "you sell boots"])
def test_words_that_do_not_stand_together_are_no_span(text: str) -> None:
    assert not is_span(text, QUESTION)


def test_a_later_occurrence_counts_where_the_first_is_part_of_a_word() -> None:
    assert is_span("art", "smart art")
    assert not is_span("art", "smart party")


def test_an_occurrence_that_overlaps_a_part_of_a_word_counts() -> None:
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
def test_a_word_may_end_in_a_combining_mark(text: str, question: str) -> None:
    assert is_span(text, question)


def test_a_word_without_its_combining_mark_is_part_of_a_word() -> None:
    assert not is_span("cafe", "a cafe\u0301 table")


@pytest.mark.parametrize("text", ["Straße", "STRASSE", "ΣΟΦΟΣ", "σοφος"])
def test_case_is_folded_as_unicode_has_it(text: str) -> None:
    assert is_span(text, "die straße σοφοσ")


WORDS = st.sampled_from(["a", "b", "ab", "ba"])


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS, min_size=1, max_size=3))
@example(["ba", "a", "a"], ["a", "a"])
def test_a_span_is_exactly_a_run_of_words(words: list[str], wanted: list[str]) -> None:
    runs = [words[i : i + len(wanted)] for i in range(len(words))]
    assert is_span(" ".join(wanted), " ".join(words)) == (wanted in runs)


@settings(deadline=None)
@given(st.text(max_size=12), st.text(max_size=40))
def test_a_span_starts_and_ends_with_a_letter_digit_or_mark(text: str, question: str) -> None:
    if is_span(text, question):
        stripped = text.strip()
        assert stripped
        assert not re.match(r"[!-/:-@\[-^`{-~]", stripped[0])
        assert not re.match(r"[!-/:-@\[-^`{-~]", stripped[-1])
