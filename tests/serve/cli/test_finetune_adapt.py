"""`casewright finetune adapt`: from annotated messages to a plan parser for one toolbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.helpers import one_line_error, result, run

#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)
NAMES = ["mill", "lathe", "drill", "saw", "press", "crane", "boiler", "oven", "pump", "fan"]
WORDS = ("how hot is the {0}", "what is the temperature of our {0} right now", "where is a {0}")
ADAPT = ("finetune", "adapt", "--domain", "plant.py:domain", "--input")


def written(folder: Path, count: int) -> Path:
    file = folder / "learn.jsonl"
    rows = [
        {
            "id": f"{name} {text} {n}",
            "query": text.format(name) + "!" * n,
            "plan": f's1 = find_machine(query="{name}")',
        }
        for n in range(20)
        for text in WORDS
        for name in NAMES
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]), encoding="utf-8")
    return file


def test_finetune_adapt_learns_from_messages_and_its_adapter_plans_in_the_ensemble(
    home: Path, tmp_path: Path
) -> None:
    run(home, "new", tmp_path / "plant.py")
    written(tmp_path, 20)
    adapt = [*ADAPT, "learn.jsonl", "--output", "mine", "--minutes", "0", "--json"]
    # Time is over at once: what the first step taught is kept.
    told = result(run(home, *adapt, folder=tmp_path))
    assert told["messages"] == 20
    assert told["next"][0].endswith("--input test.jsonl --adapter mine")
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {
        "parser.json",
        "parser.safetensors",
    }
    for command in ("plan", "ask"):
        asked = [command, "how hot is the mill", "--domain", "plant.py:domain", "--json"]
        made = result(run(home, *asked, "--adapter", "mine", folder=tmp_path))
        planner = made["planner"]
        assert (planner if command == "plan" else planner["name"]) == "ensemble:mine"
    written(tmp_path, 3)
    measured = ["eval", "--domain", "plant.py:domain", "--input", "learn.jsonl", "--json"]
    told = result(run(home, *measured, "--adapter", "mine", folder=tmp_path))
    assert (told["planner"], told["messages"]) == ("ensemble:mine", 3)


@pytest.mark.parametrize(("count", "mend"), [(19, "casewright draft"), (501, "finetune sample")])
def test_finetune_adapt_refuses_19_and_501_messages_and_names_another_command(
    home: Path, tmp_path: Path, count: int, mend: str
) -> None:
    run(home, "new", tmp_path / "plant.py")
    written(tmp_path, count)
    said = one_line_error(run(home, *ADAPT, "learn.jsonl", "--output", "mine", folder=tmp_path))
    assert f"has {count} annotated messages" in said
    assert mend in said


def test_invalid_inputs_of_finetune_adapt_and_missing_parsers_print_one_line(
    home: Path, tmp_path: Path
) -> None:
    run(home, "new", tmp_path / "plant.py")
    said = one_line_error(run(home, *ADAPT, "none.jsonl", "--output", "mine", folder=tmp_path))
    assert said.startswith("none.jsonl cannot be read")
    written(tmp_path, 20)
    said = one_line_error(run(home, *ADAPT, "learn.jsonl", "--output", "plant.py", folder=tmp_path))
    assert "is a file. Give a folder" in said
    (tmp_path / "other.jsonl").write_text(
        "".join(
            json.dumps({"id": n, "query": f"q {n}", "plan": "s1 = find_lorry()"}) + "\n"
            for n in range(20)
        )
    )
    said = one_line_error(run(home, *ADAPT, "other.jsonl", "--output", "mine", folder=tmp_path))
    assert "is not right for the toolbox" in said
    for command in ("plan", "eval"):
        asked = [command, "--domain", "plant.py:domain", "--planner", "parser:nowhere"]
        asked += ["q"] if command == "plan" else ["--input", "learn.jsonl"]
        said = one_line_error(run(home, *asked, folder=tmp_path))
        assert "nowhere holds no plan parser" in said
