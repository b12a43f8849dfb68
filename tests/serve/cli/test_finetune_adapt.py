"""`casewright finetune adapt`: from annotated messages to an adapter, with a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.finetune.adapt import EXAMPLES, adapted_data, training_minutes
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.planner import AnnotatedQuery
from casewright.planner.language_model.card import read_card
from casewright.planner.language_model.source import ADAPTER, read_json
from casewright.planner.shipped import shipped_planner
from tests.serve.helpers import one_line_error, result, run
from tests.support.tiny_adapter import save_tiny_adapter

#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)
RECIPE = """
[data]
domain = "shopping"
validation = 0.2

[data.tevo]
shots = 1

[model]
base = "{base}"
device = "cpu"

[lora]
r = 4
alpha = 8
dropout = 0.0

[training]
epochs = 1
max_length = 8000
batch_per_device = 4
log_steps = 1
"""
NAMES = ["mill", "lathe", "drill", "saw", "press", "crane", "boiler", "oven", "pump", "fan"]
WORDS = ("how hot is the {0}", "what is the temperature of our {0} right now", "where is a {0}")


def written(folder: Path, count: int) -> Path:
    file = folder / "learn.jsonl"
    rows = [
        {
            "id": f"{name} {n}",
            "query": text.format(name),
            "plan": f's1 = find_machine(query="{name}")',
        }
        for n, text in enumerate(WORDS)
        for name in NAMES
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]), encoding="utf-8")
    return file


def queries(count: int) -> list[AnnotatedQuery]:
    return [AnnotatedQuery.read({"query": f"q{n}", "plan": "s1 = a()"}) for n in range(count)]


def test_adapter_is_trained_on_from_another_and_plans_at_once(home: Path, tmp_path: Path) -> None:
    start = save_tiny_adapter(tmp_path)
    (tmp_path / "own.toml").write_text(RECIPE.format(base=tmp_path / "base"), encoding="utf-8")
    run(home, "new", tmp_path / "plant.py")
    written(tmp_path, 20)
    adapt = ["finetune", "adapt", "--domain", "plant.py:domain", "--input", "learn.jsonl"]
    adapt += ["--recipe", "own.toml", "--from", str(start), "--output", "mine", "--json"]
    # Time is over at once: what the first step taught is kept.
    told = result(run(home, *adapt, "--minutes", "0", folder=tmp_path))
    assert told["metrics"]["steps"] == 1
    assert told["metrics"]["steps_planned"] > 1
    assert told["data"]["manifest"]["queries"]["taken"] == 20
    assert told["next"][0].endswith("--input test.jsonl --adapter mine")
    card = read_card(tmp_path / "mine")
    assert card is not None
    assert card["from"], "the weights that it started from are not told"
    for command in ("plan", "ask"):
        asked = [command, "how hot is the mill", "--domain", "plant.py:domain", "--json"]
        made = result(run(home, *asked, "--adapter", "mine", folder=tmp_path))
        planner = made["planner"]
        assert (planner if command == "plan" else planner["name"]) == "model:mine"
    measured = ["eval", "--domain", "plant.py:domain", "--input", "learn.jsonl", "--json"]
    told = result(run(home, *measured, "--adapter", "mine", folder=tmp_path))
    assert (told["planner"], told["messages"]) == ("local:mine", 20)


@pytest.mark.parametrize(("count", "mend"), [(19, "casewright draft"), (501, "finetune sample")])
def test_too_few_and_too_many_messages_are_refused_with_a_mend(count: int, mend: str) -> None:
    data = Recipe.read(find_recipe("adapt"), files=False).data
    with pytest.raises(Exception, match=f"has {count} annotated messages.*{mend}"):
        adapted_data(data, "plant.py:domain", Path("learn.jsonl"), queries(count))


def test_few_messages_are_posed_more_often_than_many() -> None:
    data = Recipe.read(find_recipe("adapt"), files=False).data
    for count in (20, 60, 500):
        made = adapted_data(data, "plant.py:domain", Path("learn.jsonl"), queries(count))
        assert made.copies == max(1, round(EXAMPLES / count))
        assert (made.domain, made.queries) == ("plant.py:domain", Path("learn.jsonl").absolute())


def test_recipe_goes_on_with_what_ships() -> None:
    recipe = Recipe.read(find_recipe("adapt"), files=False)
    settings = read_json(shipped_planner() / ADAPTER)
    assert (recipe.lora.r, recipe.lora.alpha) == (settings["r"], settings["lora_alpha"])
    assert recipe.model.base == settings["base_model_name_or_path"]


def test_steps_have_what_is_left_of_the_time() -> None:
    assert training_minutes(10, 90) == 7.5
    assert training_minutes(1, 600) == 0


def test_file_that_is_none_and_folder_that_cannot_be_are_one_line(
    home: Path, tmp_path: Path
) -> None:
    run(home, "new", tmp_path / "plant.py")
    adapt = ["finetune", "adapt", "--domain", "plant.py:domain", "--input"]
    said = one_line_error(run(home, *adapt, "none.jsonl", "--output", "mine", folder=tmp_path))
    assert said.startswith("none.jsonl cannot be read")
    written(tmp_path, 20)
    said = one_line_error(run(home, *adapt, "learn.jsonl", "--output", "plant.py", folder=tmp_path))
    assert "is a file. Give a folder" in said
