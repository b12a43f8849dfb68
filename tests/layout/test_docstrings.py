"""The language of docstrings: the first line says what is returned, done, or there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.layout.sources import ADDED_FILES, PACKAGE_FILES, ROOM_FILES, ROOT

FIRST = re.compile(
    r"(whether|what|which|who|whose|whom|how|why|when|where|"
    r"i|it|its|we|our|you|your|they|them|he|she|this|that|these|those|there|ones?'s|"
    r"(no|some|any|every)(body|thing|one)|none|others|both of|all of|each of|one of)\b",
    re.I,
)
#: Descriptions of tools, which planners read and were trained with.
TOOLS = {"domains/shopping/tools.py"}


def first_lines(file: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text.splitlines()[0]


@pytest.mark.parametrize(
    "first", ["Whether it ends.", "What is read.", "One of the rows.", "Nothing."]
)
def test_the_rule_sees_such_lines(first: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f'def a():\n    """{first}"""\n')
    assert [line for _, line in first_lines(file) if FIRST.match(line)] == [first]


def test_no_docstring_begins_with_a_question_word_or_a_pronoun() -> None:
    files = [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES]
    assert len(files) > 60
    assert [
        f"{file.relative_to(ROOT)}:{number}: {line}"
        for file in files
        if str(file.relative_to(ROOT)) not in TOOLS
        for number, line in first_lines(file)
        if FIRST.match(line)
    ] == []
