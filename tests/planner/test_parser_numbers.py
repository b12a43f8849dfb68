"""Numbers are found in a message, in digits and in words."""

from __future__ import annotations

import pytest

from casewright.planner.parser.numbers import number_mentions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("for 4 people", 4),
        ("max 1,400 euro", 1400),
        ("ferritin, 1.5 angstrom", 1.5),
        ("two hundred lines", 200),
        ("forty-two seats", 42),
        ("thirteen and a half metres", 13.5),
        ("over three weeks", 21),
        ("70 percent of the span", 0.7),
        ("half an hour", 0.5),
        ("both of them", 2),
    ],
)
def test_number_mentions_finds_numbers_in_digits_or_words(text: str, value: float) -> None:
    assert value in {mention.value for mention in number_mentions(text)}


def test_number_mention_has_the_position_of_its_text() -> None:
    text = "we are twenty five people"
    mention = next(m for m in number_mentions(text) if m.value == 25)
    assert text[mention.start : mention.end] == "twenty five"
