"""The reader of Seal-Tools: the plans of its items, and the errors for other files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.tool_sets.registry import READERS, tool_queries
from tests.support.instruction_files import seal_call as called
from tests.support.instruction_files import seal_items, seal_tool, write_lines

SEAL_TOOLS = [
    seal_tool("findBed", ["name"], ["bed_id", "soil"], name="str"),
    seal_tool("water", ["bed_id"], ["done"], bed_id="str", litres="int"),
    seal_tool("mow", ["lawn"], ["done"], lawn="str"),
]
WATERED = "Give the begonias 3 litres."


def seal(folder: Path, *items: tuple[str, list[dict[str, Any]]]) -> Path:
    write_lines(folder / "tool.jsonl", SEAL_TOOLS)
    seal_items(folder / "dev-dev.jsonl", items, ["mow", "water"])
    return folder


def plans(name: str, folder: Path) -> tuple[list[str], Counter[str]]:
    refused: Counter[str] = Counter()
    return [str(query.plan) for query, _ in tool_queries(name, folder, refused)], refused


def test_sealtools_becomes_plans_with_references_to_responses(tmp_path: Path) -> None:
    found = called("findBed", ["API_call_0", "API_call_1"], name="begonias")
    watered = called("water", ["API_call_2"], bed_id="API_call_0", litres="3")
    ((query, toolbox),) = tool_queries("sealtools", seal(tmp_path, (WATERED, [found, watered])))
    assert str(query.plan) == (
        's1 = findBed(name="begonias")\ns2 = water(bed_id=s1.bed_id, litres=3)'
    )
    # What was retrieved, and what the plan needs beside it.
    assert set(toolbox.names) == {"findBed", "mow", "water", "no_evidence"}
    assert query.record.id == "sealtools:dev-dev-0"


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([called("mow", [], lawn="cricket green")], "a text that has nothing of the question"),
        ([called("dig", [])], "a call of a tool that is not declared"),
        (
            [called("water", [], bed_id="API_call_7")],
            "a reference to a response that is not there",
        ),
        (
            [called("findBed", [], name="near API_call_0")],
            "a reference to a response that is not",
        ),
        ([{"api": "mow"}], "a gold call is not in the expected form"),
        ([called("mow", [])], "a required argument is not given"),
    ],
    ids=["made up", "unknown tool", "dangling", "inside a text", "form", "missing"],
)
def test_sealtools_items_without_a_right_plan_are_refused_and_counted(
    tmp_path: Path, calls: list[dict[str, Any]], why: str
) -> None:
    made, refused = plans("sealtools", seal(tmp_path, (WATERED, calls)))
    assert made == []
    ((told, times),) = refused.items()
    assert told.startswith(f"sealtools: {why}")
    assert times == 1


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("sealtools", {}, "has none of"),
        ("sealtools", {"dev-dev.jsonl": "{}\n"}, "tool.jsonl does not exist"),
        ("sealtools", {"dev-dev.jsonl": "{}", "tool.jsonl": "{}"}, "api_name: Field required"),
    ],
    ids=["nothing", "no tools", "form"],
)
def test_sealtools_error_names_the_folder_of_missing_or_invalid_files(
    tmp_path: Path, name: str, files: dict[str, str], said: str
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        tool_queries(name, tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_tool_set_readers_list_the_benchmark_that_they_contaminate() -> None:
    spoiled = {name: list(one.contaminates) for name, one in READERS.items()}
    assert spoiled == {"bfcl": ["BFCL"], "sealtools": ["Seal-Tools"], "toolalpaca": ["ToolAlpaca"]}
