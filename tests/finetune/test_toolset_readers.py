"""The reader of Seal-Tools: the plans of its items, and the errors for other files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.tool_sets.registry import READERS, tool_queries
from tests.support.instruction_files import seal_call, seal_items, seal_tool, write_lines

SEAL_TOOLS = [
    seal_tool("findBed", ["name"], ["bed_id", "soil"], name="str"),
    seal_tool("water", ["bed_id"], ["done"], bed_id="str", litres="int"),
    seal_tool("mow", ["lawn"], ["done"], lawn="str"),
]
QUESTION = "Give the begonias 3 litres."


def write_set(folder: Path, *items: tuple[str, list[dict[str, Any]]]) -> Path:
    write_lines(folder / "tool.jsonl", SEAL_TOOLS)
    seal_items(folder / "dev-dev.jsonl", items, ["mow", "water"])
    return folder


def read_plans(name: str, folder: Path) -> tuple[list[str], Counter[str]]:
    refused: Counter[str] = Counter()
    return [str(query.plan) for query, _ in tool_queries(name, folder, refused)], refused


def test_sealtools_becomes_plans_with_references_to_responses(tmp_path: Path) -> None:
    find_call = seal_call("findBed", ["API_call_0", "API_call_1"], name="begonias")
    water_call = seal_call("water", ["API_call_2"], bed_id="API_call_0", litres="3")
    folder = write_set(tmp_path, (QUESTION, [find_call, water_call]))
    ((query, toolbox),) = tool_queries("sealtools", folder)
    assert str(query.plan) == (
        's1 = findBed(name="begonias")\ns2 = water(bed_id=s1.bed_id, litres=3)'
    )
    # The toolbox holds the retrieved tools and the other tools of the plan.
    assert set(toolbox.names) == {"findBed", "mow", "water", "no_evidence"}
    assert query.record.id == "sealtools:dev-dev-0"


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([seal_call("mow", [], lawn="cricket green")], "a text that has nothing of the question"),
        ([seal_call("dig", [])], "a call of a tool that is not declared"),
        (
            [seal_call("water", [], bed_id="API_call_7")],
            "a reference to a response that is not there",
        ),
        (
            [seal_call("findBed", [], name="near API_call_0")],
            "a reference to a response that is not",
        ),
        ([{"api": "mow"}], "a gold call is not in the expected form"),
        ([seal_call("mow", [])], "a required argument is not given"),
    ],
    ids=["made up", "unknown tool", "dangling", "inside a text", "form", "missing"],
)
def test_sealtools_items_without_a_right_plan_are_refused_and_counted(
    tmp_path: Path, calls: list[dict[str, Any]], reason: str
) -> None:
    queries, refused = read_plans("sealtools", write_set(tmp_path, (QUESTION, calls)))
    assert queries == []
    ((counted_reason, count),) = refused.items()
    assert counted_reason.startswith(f"sealtools: {reason}")
    assert count == 1


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("sealtools", {}, "has none of"),
        ("sealtools", {"dev-dev.jsonl": "{}\n"}, "tool.jsonl does not exist"),
        ("sealtools", {"dev-dev.jsonl": "{}", "tool.jsonl": "{}"}, "api_name: Field required"),
    ],
    ids=["nothing", "no tools", "form"],
)
def test_sealtools_error_names_the_folder_of_missing_or_invalid_files(
    tmp_path: Path, name: str, files: dict[str, str], message: str
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        tool_queries(name, tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_tool_set_readers_list_the_benchmark_that_they_contaminate() -> None:
    names = {name: list(entry.contaminates) for name, entry in READERS.items()}
    assert names == {"bfcl": ["BFCL"], "sealtools": ["Seal-Tools"], "toolalpaca": ["ToolAlpaca"]}
