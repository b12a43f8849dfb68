"""`casewright finetune adapt`: from annotated messages to a plan parser for one toolbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.helpers import one_line_error, result, run

#: Training is slow on a busy machine.
pytestmark = pytest.mark.timeout(600)
NAMES = ["mill", "lathe", "drill", "saw", "press", "crane", "boiler", "oven", "pump", "fan"]
TEMPLATES = ("how hot is the {0}", "what is the temperature of our {0} right now", "where is a {0}")
ADAPT = ("finetune", "adapt", "--domain", "plant.py:domain", "--input")


def write_messages(folder: Path, count: int) -> Path:
    file = folder / "learn.jsonl"
    rows = [
        {
            "id": f"{name} {template} {number}",
            "query": template.format(name) + "!" * number,
            "plan": f's1 = find_machine(query="{name}")',
        }
        for number in range(20)
        for template in TEMPLATES
        for name in NAMES
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]), encoding="utf-8")
    return file


def test_finetune_adapt_learns_from_messages_and_its_adapter_plans_in_the_ensemble(
    home: Path, tmp_path: Path
) -> None:
    run(home, "new", tmp_path / "plant.py")
    write_messages(tmp_path, 20)
    adapt = [*ADAPT, "learn.jsonl", "--output", "mine", "--minutes", "0", "--json"]
    # With 0 minutes, training ends after its first step.
    report = result(run(home, *adapt, folder=tmp_path))
    assert report["messages"] == 20
    assert report["next"][0].endswith("--input test.jsonl --adapter mine")
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {
        "parser.json",
        "parser.safetensors",
    }
    for command in ("plan", "ask"):
        arguments = [command, "how hot is the mill", "--domain", "plant.py:domain", "--json"]
        output = result(run(home, *arguments, "--adapter", "mine", folder=tmp_path))
        planner = output["planner"]
        assert (planner if command == "plan" else planner["name"]) == "ensemble:mine"
    write_messages(tmp_path, 3)
    arguments = ["eval", "--domain", "plant.py:domain", "--input", "learn.jsonl", "--json"]
    report = result(run(home, *arguments, "--adapter", "mine", folder=tmp_path))
    assert (report["planner"], report["messages"]) == ("ensemble:mine", 3)


@pytest.mark.parametrize(("count", "command"), [(19, "casewright draft"), (501, "finetune sample")])
def test_finetune_adapt_refuses_19_and_501_messages_and_names_another_command(
    home: Path, tmp_path: Path, count: int, command: str
) -> None:
    run(home, "new", tmp_path / "plant.py")
    write_messages(tmp_path, count)
    error = one_line_error(run(home, *ADAPT, "learn.jsonl", "--output", "mine", folder=tmp_path))
    assert f"has {count} annotated messages" in error
    assert command in error


def test_invalid_inputs_of_finetune_adapt_and_missing_parsers_print_one_line(
    home: Path, tmp_path: Path
) -> None:
    run(home, "new", tmp_path / "plant.py")
    error = one_line_error(run(home, *ADAPT, "none.jsonl", "--output", "mine", folder=tmp_path))
    assert error.startswith("none.jsonl cannot be read")
    write_messages(tmp_path, 20)
    error = one_line_error(
        run(home, *ADAPT, "learn.jsonl", "--output", "plant.py", folder=tmp_path)
    )
    assert "is a file. Give a folder" in error
    rows = [{"id": n, "query": f"q {n}", "plan": "s1 = find_lorry()"} for n in range(20)]
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    error = one_line_error(run(home, *ADAPT, "other.jsonl", "--output", "mine", folder=tmp_path))
    assert "is not right for the toolbox" in error
    for command in ("plan", "eval"):
        arguments = [command, "--domain", "plant.py:domain", "--planner", "parser:nowhere"]
        arguments += ["q"] if command == "plan" else ["--input", "learn.jsonl"]
        error = one_line_error(run(home, *arguments, folder=tmp_path))
        assert "nowhere holds no plan parser" in error
