"""Tests of the first lines of docstrings, which say what an object returns, does or is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.layout.sources import ADDED_FILES, PACKAGE_FILES, ROOM_FILES, ROOT, source

FIRST = re.compile(
    r"(whether|what|which|who|whose|whom|how|why|when|where|"
    r"i|it|its|we|our|you|your|they|them|he|she|this|that|these|those|there|ones?'s|"
    r"(no|some|any|every)(body|thing|one)|none|others|both of|all of|each of|one of)\b",
    re.I,
)
#: Descriptions of tools, which planners read and were trained with.
TOOLS = {"domains/shopping/tools.py"}


@pytest.mark.parametrize(
    "first", ["Whether it ends.", "What is read.", "One of the rows.", "Nothing."]
)
def test_docstring_rule_finds_lines_that_begin_with_a_question_word_or_pronoun(
    first: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.py"
    file.write_text(f'def a():\n    """{first}"""\n')
    assert [line for _, line in source(file).first_lines if FIRST.match(line)] == [first]


def test_no_docstring_begins_with_a_question_word_or_a_pronoun() -> None:
    files = [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES]
    assert len(files) > 60
    assert [
        f"{file.relative_to(ROOT)}:{number}: {line}"
        for file in files
        if str(file.relative_to(ROOT)) not in TOOLS
        for number, line in source(file).first_lines
        if FIRST.match(line)
    ] == []
