"""Every example runs as it is, offline, and prints the expected lines."""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
from functools import cache

import pytest

from tests.layout.sources import ROOT

FOLDER = ROOT / "examples"
#: Texts in the output of each example, in order.
OUTPUTS = {
    "in_a_graph.py": [
        "(looking up the orders of C1)",
        "Asked: Which day suits you?",
        "O7 comes on Friday [E2]",
        "Your desk",
    ],
    "as_a_tool.py": [
        "human: Is the lathe too warm?",
        "'question': 'how warm is the lathe'",
        "lathe 7, hall B [E1]",
        "M7: 61 °C [E2]",
        "[E2] sensor:M7",
        "steps: ['done', 'done']",
        "ai: The lathe is at 61 °C.",
    ],
    "as_a_runnable.py": [
        "piped: ",
        "Oil the spindle weekly. [E1]",
        "piece: - Call the maker. [E1]",
        "batched: ['E1']",
        "batched: The question is empty.",
        "event: plan",
        "event: answer",
    ],
}


def test_every_example_file_has_expected_output() -> None:
    assert {file.name for file in FOLDER.glob("*.py")} == set(OUTPUTS)


@cache
def run_example(name: str) -> str:
    # A process for each example would need seconds for its imports.
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    return out.getvalue()


@pytest.mark.parametrize("name", OUTPUTS)
def test_example_runs_and_prints_the_expected_lines_in_order(name: str) -> None:
    start = 0
    for line in OUTPUTS[name]:
        assert line in run_example(name)[start:], run_example(name)
        start = run_example(name).index(line, start) + len(line)


def test_interrupted_example_looks_up_once_and_tenants_see_only_their_cases() -> None:
    assert run_example("in_a_graph.py").count("looking up") == 1
    assert run_example("as_a_runnable.py").count("Oil the spindle weekly") == 1


@pytest.mark.parametrize("name", OUTPUTS)
def test_example_is_short_and_its_docstring_names_its_command(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert f"python examples/{name}" in (ast.get_docstring(ast.parse(text)) or "")
