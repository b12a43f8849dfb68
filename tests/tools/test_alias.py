from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewright.tools import alias, original

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Characters of escapes, and characters that need an escape.
NAMES = st.text("_x0159afA -é²😀") | st.text(max_size=12)


@pytest.mark.parametrize("name", ["search", "_private", "a1", "X_Y", "x41_"])
def test_alias_of_an_identifier_is_the_identifier(name: str) -> None:
    assert alias(name) == name


@pytest.mark.parametrize("name", ["my tool", "a-b", "naïve", "1st", "a.b/c", "工具", "²", "😀"])
def test_alias_of_any_other_name_is_a_different_identifier(name: str) -> None:
    assert alias(name) != name
    assert IDENTIFIER.fullmatch(alias(name))


@settings(deadline=None)
@given(NAMES)
def test_an_alias_is_always_an_identifier(name: str) -> None:
    assert IDENTIFIER.fullmatch(alias(name))


@settings(deadline=None)
@given(NAMES)
@example("_x41_")
@example("_x31é")
@example("_x_")
@example("")
def test_original_name_is_restored_from_its_alias(name: str) -> None:
    assert original(alias(name)) == name


@settings(deadline=None)
@given(NAMES, NAMES)
@example("_x31é", "1xe9_")
@example("", "_x_")
def test_two_names_never_have_the_same_alias(name: str, other: str) -> None:
    assert (alias(name) == alias(other)) == (name == other)
