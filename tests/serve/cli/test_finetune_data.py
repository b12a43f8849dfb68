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
from tests.serve.helpers import (
    Output,
    built_home,
    new_home,
    one_line_error,
    result,
    run,
    run_process,
)
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
    """Return a folder with a recipe and its queries, tools, pools and instructions."""
    folder = tmp_path_factory.mktemp("data")
    queries = [
        {**query.record.model_dump(), "plan": str(query.plan), "class": query.label}
        for query in toy_queries()
    ]
    write_lines(folder / "queries.jsonl", queries)
    tools = json.dumps(toolbox_to_records(SHOP))
    (folder / "tools.json").write_text(tools, encoding="utf-8")
    pools = {"find": {"names": ["search_shop"], "descriptions": ["Looks for goods."]}}
    (folder / "pools.json").write_text(json.dumps(pools), encoding="utf-8")
    instructions = [
        {
            "id": f"seed_task_{number}",
            "instruction": f"Which number comes after {number}? Say why.",
            "output": f"It is {number + 1}. One more than {number} is that.",
        }
        for number in range(80)
    ]
    write_lines(folder / "instructions.jsonl", instructions)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[Path]:
    """Yield a home without stores, since the recipe's own tools need none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield new_home(folder / "home")


@pytest.fixture(scope="module")
def completed(home: Path, folder: Path) -> Output:
    return build_data(home, folder, "--output", folder / "set", "--json")


def build_data(home: Path, folder: Path, *arguments: str | Path) -> Output:
    return run(home, "finetune", "data", "--recipe", folder / "recipe.toml", *arguments)


def file_contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_finetune_data_writes_a_readable_training_set(completed: Output, folder: Path) -> None:
    report = result(completed)
    training_set = read_training_set(folder / "set")
    assert report == {"folder": str(folder / "set"), "manifest": training_set.manifest}
    names = {"manifest.json", "train.jsonl", "validation.jsonl"}
    assert set(file_contents(folder / "set")) == names
    plans = [example for example in training_set.examples if example.task == "plan"]
    assert {example.source for example in plans} == {f"t{n}" for n in range(len(toy_queries()))}
    assert any("search_shop" in example.completion for example in plans)
    assert training_set.validation


def test_manifest_has_number_and_licences_of_instructions(completed: Output, folder: Path) -> None:
    manifest = result(completed)["manifest"]
    examples = read_training_set(folder / "set").examples
    generic = [example for example in examples if example.source.startswith("hugging_face:")]
    instructions = manifest["instructions"]
    assert (instructions["pool"], instructions["taken"], len(generic)) == (80, 20, 20)
    assert instructions["per_planning_task"] == round(20 / (len(examples) - 20), 4)
    assert {example.task for example in generic} == {"instruction", "instruction:evolved"}
    assert list(instructions["licences"]) == ["instructions.jsonl"]


def test_manifest_contains_no_absolute_path(completed: Output, folder: Path) -> None:
    manifest = result(completed)["manifest"]
    assert str(folder) not in json.dumps(manifest)
    assert manifest["data"]["queries"] == "queries.jsonl"
    assert manifest["data"]["instructions"]["sources"][0]["path"] == "instructions.jsonl"


def test_same_seed_makes_the_same_bytes_in_another_process_and_folder(
    completed: Output, home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "other"
    copy.mkdir()
    for name in ("recipe.toml", "queries.jsonl", "tools.json", "pools.json", "instructions.jsonl"):
        shutil.copy(folder / name, copy / name)
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    options = ("--recipe", copy / "recipe.toml", "--output", copy / "set")
    repeated = run_process(home, "finetune", "data", *options)
    assert repeated.returncode == 0, repeated.stderr
    assert file_contents(copy / "set") == file_contents(folder / "set")


def test_option_sample_prints_examples_and_writes_no_file(home: Path, folder: Path) -> None:
    before = sorted(file.name for file in folder.iterdir())
    completed = build_data(home, folder, "--sample", "2")
    assert completed.returncode == 0, completed.stderr
    for task in ("plan", *TASK_NAMES, "instruction", "instruction:evolved"):
        assert f"══ {task}: " in completed.stdout
        assert f"── {task} 2: " in completed.stdout
        assert f"── {task} 3: " not in completed.stdout
    assert "▶ s1 = " in completed.stdout
    assert sorted(file.name for file in folder.iterdir()) == before


def test_option_sample_with_json_groups_examples_by_task(home: Path, folder: Path) -> None:
    report = result(build_data(home, folder, "--sample", "1", "--json"))
    assert "folder" not in report
    assert {"plan", "instruction"} <= set(report["samples"])
    for task, rows in report["samples"].items():
        assert [row["task"] for row in rows] == [task]


def test_option_sample_prints_initial_queries_and_added_queries_separately(
    home: Path, folder: Path
) -> None:
    recipe = folder / "few.toml"
    sampling = '\n[data.sampling]\nmethod = "dqs"\ninitial = 10\nsize = 20\n'
    recipe.write_text(RECIPE + sampling, encoding="utf-8")
    arguments = ("finetune", "data", "--recipe", recipe, "--sample", "3")
    samples = result(run(home, *arguments, "--json"))["queries"]
    counts = {name: len(queries) for name, queries in samples.items()}
    assert counts == {"initial pool": 3, "added by dqs": 3}
    assert not set(samples["initial pool"]) & set(samples["added by dqs"])
    completed = run(home, *arguments)
    assert completed.returncode == 0, completed.stderr
    assert "══ added by dqs: 3 queries" in completed.stdout
    assert all(f"── {query}\n" in completed.stdout for group in samples.values() for query in group)


def test_training_set_leaves_out_the_measuring_queries_of_the_domain(tmp_path: Path) -> None:
    shop = find_domain("shopping")
    training, measuring = (
        [query.record.model_dump() | {"plan": str(query.plan)} for query in queries]
        for queries in (shop.queries()[:40], shop.measuring_queries()[:3])
    )
    write_lines(tmp_path / "queries.jsonl", [*training, *measuring])
    recipe = tmp_path / "recipe.toml"
    recipe_text = '[data]\ndomain = "shopping"\nqueries = "queries.jsonl"\nvalidation = 0.2\n'
    recipe.write_text(recipe_text, encoding="utf-8")
    options = ("--recipe", recipe, "--output", tmp_path / "set", "--json")
    manifest = result(run(built_home(), "finetune", "data", *options))["manifest"]
    counts = manifest["queries"]
    assert (counts["given"], counts["left_out_for_measuring"], counts["taken"]) == (43, 3, 40)
    assert manifest["toolbox"]["tools"][0] == "prod_search"
    examples = read_training_set(tmp_path / "set").examples
    prompts = "\n".join(str(example.prompt) for example in examples)
    assert [query["query"] for query in measuring if query["query"] in prompts] == []


def test_finetune_data_prints_counts_of_examples_and_queries(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    completed = build_data(home, folder, "--output", tmp_path / "set")
    assert completed.returncode == 0, completed.stderr
    training_set = read_training_set(tmp_path / "set")
    assert " all " in completed.stdout
    assert str(len(training_set.train)) in completed.stdout
    assert f"Of {len(toy_queries())} queries {len(toy_queries())} were taken" in completed.stdout


def test_training_set_is_replaced_only_with_option_force(
    home: Path, folder: Path, completed: Output
) -> None:
    before = file_contents(folder / "set")
    (folder / "set" / "train.jsonl").write_text("other", encoding="utf-8")
    changed = file_contents(folder / "set")
    assert "--force" in one_line_error(build_data(home, folder, "--output", folder / "set"))
    assert file_contents(folder / "set") == changed
    replaced = build_data(home, folder, "--output", folder / "set", "--force")
    assert replaced.returncode == 0, replaced.stderr
    assert file_contents(folder / "set") == before


@pytest.mark.parametrize(
    ("change", "message"),
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
    home: Path, folder: Path, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in RECIPE
    for file in folder.glob("*.json*"):
        shutil.copy(file, tmp_path)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace(*change), encoding="utf-8")
    completed = run(home, "finetune", "data", "--recipe", recipe, "--output", tmp_path / "set")
    assert message in one_line_error(completed)
    assert completed.stdout == ""
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
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
    home: Path, folder: Path, arguments: list[str], message: str
) -> None:
    paths = [str(folder / argument) if "." in argument else argument for argument in arguments]
    assert message in one_line_error(run(home, "finetune", "data", *paths))


def test_finetune_data_adds_queries_of_a_tool_use_set_and_prints_their_counts(
    home: Path, folder: Path
) -> None:
    examples = [
        (
            f"dig {number} holes",
            [function("dig", ["holes"], holes="integer")],
            [{"dig": {"holes": [number]}}],
        )
        for number in range(12)
    ]
    leaderboard(folder / "sets", "multiple", examples)
    toolsets = (
        '[data.tevo]\nqueries_per_toolbox = 8\n[[data.toolsets]]\nreader = "bfcl"\npath = "sets"'
    )
    recipe = RECIPE.partition("[data.instructions]")[0]
    (folder / "sets.toml").write_text(f"{recipe}\n{toolsets}\n", encoding="utf-8")
    completed = run(home, "finetune", "data", "--recipe", folder / "sets.toml", "--sample", "1")
    assert completed.returncode == 0, completed.stderr
    message = (
        "Of bfcl 12 queries were taken and 0 were not. A model that was trained on this set must "
        "not be tested on: BFCL."
    )
    assert message in completed.stdout
    # A recipe in another folder finds its tool-use sets with the option --sets.
    other_folder = folder / "away"
    other_folder.mkdir()
    (other_folder / "sets.toml").write_text(f"{recipe}\n{toolsets}\n", encoding="utf-8")
    arguments = ("finetune", "data", "--recipe", other_folder / "sets.toml", "--sample", "1")
    refused = run(home, *arguments)
    assert (refused.returncode, "--sets" in refused.stderr) == (2, True)
    accepted = run(home, *arguments, "--sets", folder)
    assert (accepted.returncode, accepted.stdout) == (0, completed.stdout)
