"""`casewright finetune data`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.domains import find_domain
from casewright.finetune.examples.training_set import read_training_set
from casewright.finetune.examples.ttg import TASK_NAMES
from casewright.tools import toolbox_to_records
from tests.planner.helpers import SHOP
from tests.serve.helpers import Done, built_home, new_home, one_line_error, result, run, run_process
from tests.support.instruction_files import function, leaderboard
from tests.support.readers import toy_queries

RECIPE = """
[data]
queries = "queries.jsonl"
toolbox = "tools.json"
pools = "pools.json"
validation = 0.1
seed = 3

[data.ttg]
tasks_per_query = 3

[data.instructions]
share = 0.25

[[data.instructions.sources]]
reader = "hugging_face"
path = "instructions.jsonl"
"""


def write_lines(file: Path, records: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team's own recipe, with queries, tools, pools and instructions."""
    made = tmp_path_factory.mktemp("data")
    queries = [
        {**query.record.model_dump(), "plan": str(query.plan), "class": query.label}
        for query in toy_queries()
    ]
    write_lines(made / "queries.jsonl", queries)
    told = json.dumps(toolbox_to_records(SHOP))
    (made / "tools.json").write_text(told, encoding="utf-8")
    pools = {"find": {"names": ["search_shop"], "descriptions": ["Looks for goods."]}}
    (made / "pools.json").write_text(json.dumps(pools), encoding="utf-8")
    asked = [
        {
            "id": f"seed_task_{number}",
            "instruction": f"Which number comes after {number}? Say why.",
            "output": f"It is {number + 1}. One more than {number} is that.",
        }
        for number in range(80)
    ]
    write_lines(made / "instructions.jsonl", asked)
    (made / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[Path]:
    """A home without stores, since a team's own tools need none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield new_home(folder / "home")


@pytest.fixture(scope="module")
def done(home: Path, folder: Path) -> Done:
    return data(home, folder, "--output", folder / "set", "--json")


def data(home: Path, folder: Path, *arguments: str | Path) -> Done:
    return run(home, "finetune", "data", "--recipe", folder / "recipe.toml", *arguments)


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_finetune_data_writes_a_training_set_that_can_be_read(done: Done, folder: Path) -> None:
    told = result(done)
    made = read_training_set(folder / "set")
    assert told == {"folder": str(folder / "set"), "manifest": made.manifest}
    assert {file.name for file in (folder / "set").iterdir()} == {
        "manifest.json",
        "train.jsonl",
        "validation.jsonl",
    }
    plans = [example for example in made.examples if example.task == "plan"]
    assert {example.source for example in plans} == {f"t{n}" for n in range(len(toy_queries()))}
    assert any("search_shop" in example.completion for example in plans)
    assert made.validation


def test_manifest_records_number_share_and_licences_of_the_instructions(
    done: Done, folder: Path
) -> None:
    manifest = result(done)["manifest"]
    examples = read_training_set(folder / "set").examples
    generic = [example for example in examples if example.source.startswith("hugging_face:")]
    told = manifest["instructions"]
    assert (told["pool"], told["taken"], len(generic)) == (80, 20, 20)
    assert told["per_planning_task"] == round(20 / (len(examples) - 20), 4)
    assert {example.task for example in generic} == {"instruction", "instruction:evolved"}
    assert list(manifest["instructions"]["licences"]) == ["instructions.jsonl"]


def test_manifest_contains_no_absolute_path(done: Done, folder: Path) -> None:
    manifest = result(done)["manifest"]
    assert str(folder) not in json.dumps(manifest)
    assert manifest["data"]["queries"] == "queries.jsonl"
    assert manifest["data"]["instructions"]["sources"][0]["path"] == "instructions.jsonl"


def test_same_seed_makes_the_same_bytes_in_another_process_and_folder(
    done: Done, home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("recipe.toml", "queries.jsonl", "tools.json", "pools.json", "instructions.jsonl"):
        shutil.copy(folder / name, other / name)
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    chosen = ("--recipe", other / "recipe.toml", "--output", other / "set")
    again = run_process(home, "finetune", "data", *chosen)
    assert again.returncode == 0, again.stderr
    assert files(other / "set") == files(folder / "set")


def test_option_sample_prints_examples_and_writes_no_file(home: Path, folder: Path) -> None:
    before = sorted(file.name for file in folder.iterdir())
    shown = data(home, folder, "--sample", "2")
    assert shown.returncode == 0, shown.stderr
    for task in ("plan", *TASK_NAMES, "instruction", "instruction:evolved"):
        assert f"══ {task}: " in shown.stdout
        assert f"── {task} 2: " in shown.stdout
        assert f"── {task} 3: " not in shown.stdout
    assert "▶ s1 = " in shown.stdout
    assert sorted(file.name for file in folder.iterdir()) == before


def test_option_sample_with_json_groups_examples_by_task(home: Path, folder: Path) -> None:
    told = result(data(home, folder, "--sample", "1", "--json"))
    assert "folder" not in told
    assert {"plan", "instruction"} <= set(told["samples"])
    for task, rows in told["samples"].items():
        assert [row["task"] for row in rows] == [task]


def test_option_sample_prints_initial_queries_and_added_queries_separately(
    home: Path, folder: Path
) -> None:
    few = folder / "few.toml"
    sampling = '\n[data.sampling]\nmethod = "dqs"\ninitial = 10\nsize = 20\n'
    few.write_text(RECIPE + sampling, encoding="utf-8")
    chosen = ("finetune", "data", "--recipe", few, "--sample", "3")
    drawn = result(run(home, *chosen, "--json"))["queries"]
    assert {name: len(queries) for name, queries in drawn.items()} == {
        "initial pool": 3,
        "added by dqs": 3,
    }
    assert not set(drawn["initial pool"]) & set(drawn["added by dqs"])
    shown = run(home, *chosen)
    assert shown.returncode == 0, shown.stderr
    assert "══ added by dqs: 3 queries" in shown.stdout
    assert all(f"── {query}\n" in shown.stdout for side in drawn.values() for query in side)


def test_training_set_leaves_out_the_measuring_queries_of_the_domain(tmp_path: Path) -> None:
    shop = find_domain("shopping")
    taught, measuring = (
        [query.record.model_dump() | {"plan": str(query.plan)} for query in queries]
        for queries in (shop.queries()[:40], shop.measuring_queries()[:3])
    )
    write_lines(tmp_path / "queries.jsonl", [*taught, *measuring])
    recipe = tmp_path / "recipe.toml"
    own = '[data]\ndomain = "shopping"\nqueries = "queries.jsonl"\nvalidation = 0.2\n'
    recipe.write_text(own, encoding="utf-8")
    chosen = ("--recipe", recipe, "--output", tmp_path / "set", "--json")
    manifest = result(run(built_home(), "finetune", "data", *chosen))["manifest"]
    told = manifest["queries"]
    assert (told["given"], told["left_out_for_measuring"], told["taken"]) == (43, 3, 40)
    assert manifest["toolbox"]["tools"][0] == "prod_search"
    read = read_training_set(tmp_path / "set")
    for query in measuring:
        assert [one.id for one in read.examples if query["query"] in str(one.prompt)] == []


def test_finetune_data_prints_counts_of_examples_and_queries(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    shown = data(home, folder, "--output", tmp_path / "set")
    assert shown.returncode == 0, shown.stderr
    made = read_training_set(tmp_path / "set")
    assert " all " in shown.stdout
    assert str(len(made.train)) in shown.stdout
    assert f"Of {len(toy_queries())} queries {len(toy_queries())} were taken" in shown.stdout


def test_existing_training_set_is_replaced_only_with_the_option_force(
    home: Path, folder: Path, done: Done
) -> None:
    before = files(folder / "set")
    assert "--force" in one_line_error(data(home, folder, "--output", folder / "set"))
    assert files(folder / "set") == before
    again = data(home, folder, "--output", folder / "set", "--force")
    assert again.returncode == 0, again.stderr
    assert files(folder / "set") == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("tasks_per_query = 3", "tasks_per_query = 9"), "data.ttg.tasks_per_query: 9"),
        (("seed = 3", "sed = 3"), "data.sed: There is no such field. Did you mean seed?"),
        (("tools.json", "none.json"), 'data.toolbox: There is no file "none.json"'),
        (("instructions.jsonl", "none.jsonl"), "none.jsonl"),
        (("share = 0.25", "share = 1.5"), "data.instructions.share: 1.5"),
        (("[[data.instructions.sources]]", "[[data.instructions.source]]"), "source"),
        (('queries = "queries.jsonl"\ntoolbox = "tools.json"', 'domain = "shop"'), "shopping?"),
        (('pools = "pools.json"', 'pools = "tools.json"'), "tools.json"),
        (('pools = "pools.json"', 'pools = "recipe.toml"'), "recipe.toml"),
    ],
    ids=[
        *("bounds", "misspelt", "no-toolbox", "no-instructions", "share", "misspelt-table"),
        *("no-domain", "pools", "no-json"),
    ],
)
def test_invalid_recipe_prints_an_error_of_one_line_and_writes_nothing(
    home: Path, folder: Path, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    assert change[0] in RECIPE
    for file in folder.glob("*.json*"):
        shutil.copy(file, tmp_path)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace(*change), encoding="utf-8")
    done = run(home, "finetune", "data", "--recipe", recipe, "--output", tmp_path / "set")
    assert words in one_line_error(done)
    assert done.stdout == ""
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--recipe", "recipe.toml"], "--output"),
        (["--recipe", "none-such", "--output", "set"], "none-such"),
        (["--recipe", "recipe.toml", "--sample", "0"], "--sample"),
        (["--recipe", "recipe.toml", "--output", "recipe.toml"], "is a file"),
        (["--recipe", "recipe.toml", "--output", "."], "not empty"),
        ([], "--recipe"),
    ],
    ids=["nothing-to-do", "no-recipe", "no-sample", "file", "not-empty", "nothing"],
)
def test_invalid_options_of_finetune_data_print_an_error_of_one_line(
    home: Path, folder: Path, arguments: list[str], words: str
) -> None:
    given = [str(folder / one) if "." in one else one for one in arguments]
    assert words in one_line_error(run(home, "finetune", "data", *given))


def test_finetune_data_adds_queries_of_a_tool_use_set_and_prints_their_counts(
    home: Path, folder: Path
) -> None:
    asked = [
        (
            f"dig {number} holes",
            [function("dig", ["holes"], holes="integer")],
            [{"dig": {"holes": [number]}}],
        )
        for number in range(12)
    ]
    leaderboard(folder / "sets", "multiple", asked)
    place = (
        '[data.tevo]\nqueries_per_toolbox = 8\n[[data.toolsets]]\nreader = "bfcl"\npath = "sets"'
    )
    own = RECIPE.partition("[data.instructions]")[0]
    (folder / "sets.toml").write_text(f"{own}\n{place}\n", encoding="utf-8")
    told = run(home, "finetune", "data", "--recipe", folder / "sets.toml", "--sample", "1")
    assert told.returncode == 0, told.stderr
    said = (
        "Of bfcl 12 queries were taken and 0 were not. Do not test a model that was trained on "
        "this set on: BFCL."
    )
    assert said in told.stdout
    # The same from elsewhere: what a recipe names is looked for in the folder that is given.
    away = folder / "away"
    away.mkdir()
    (away / "sets.toml").write_text(f"{own}\n{place}\n", encoding="utf-8")
    asked_for = ("finetune", "data", "--recipe", away / "sets.toml", "--sample", "1")
    refused = run(home, *asked_for)
    assert (refused.returncode, "--sets" in refused.stderr) == (2, True)
    found = run(home, *asked_for, "--sets", folder)
    assert (found.returncode, found.stdout) == (0, told.stdout)
