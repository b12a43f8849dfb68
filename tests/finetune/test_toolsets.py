from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import TrainingInputs, make_training_set
from casewright.finetune.examples.toolset import MAX_TOOLS, Toolset, ToolsetGroups, ToolsetSource
from casewright.finetune.examples.training_set import TrainingSet
from casewright.finetune.neighbours import question_key
from casewright.finetune.parser import public_sets
from casewright.finetune.parser.public_sets import public_sources
from casewright.finetune.recipe.recipe import Recipe
from casewright.planner import PlanRequest
from casewright.tools import NO_EVIDENCE
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.instruction_files import (
    function,
    leaderboard,
    seal_call,
    seal_items,
    seal_tool,
    write_lines,
)
from tests.support.readers import toy_queries

ENCODER = HashingEncoder(256)
QUERIES = toy_queries()[:40]
THINGS = ("roses", "onions", "tulips", "carrots", "lilies", "beans")
Row = tuple[str, list[Any], list[Any] | None]
VERBS = ("plant", "prune", "water", "harvest", "sow", "weed", "mulch", "graft")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a leaderboard with questions for one of eight tools, for two and for none."""
    rows: list[Row] = []
    for number in range(48):
        verb, noun = VERBS[number % 8], THINGS[number % 6]
        other = VERBS[(number + 3) % 8]
        tools = [function(name, ["what"], what="string") for name in (verb, other)]
        gold: list[Any] = [{verb: {"what": [noun]}}]
        question = f"{verb} {noun} {'quickly ' * (number // 24)}in bed {number}"
        if number % 4 == 0:
            gold.append({other: {"what": [noun]}})
            question = f"{question} then {other} them"
        rows.append((question, tools, gold))
    sets_folder = tmp_path_factory.mktemp("sets")
    leaderboard(sets_folder, "multiple", rows)
    misfits: list[Row] = [("who sang this", [function("plant", ["what"], what="string")], None)]
    leaderboard(sets_folder, "irrelevance", misfits)
    return sets_folder


def read_toolset(folder: Path, **options: Any) -> Toolset:
    source = ToolsetSource(reader="bfcl", path=str(folder), **options)
    return Toolset.read(source, frozenset(), set(), random.Random(0), Counter())


def make_set(folder: Path, **settings: Any) -> TrainingSet:
    defaults = {
        "domain": "toy",
        "validation": 0.1,
        "tevo": {"queries_per_toolbox": 8},
        "toolsets": [{"reader": "bfcl", "path": str(folder)}],
    }
    test_questions = [QUERIES[0].query, "PRUNE onions in bed 1!"]
    inputs = TrainingInputs(QUERIES, SHOP, measuring=test_questions)
    return make_training_set(DataSection.model_validate({**defaults, **settings}), inputs, ENCODER)


@pytest.fixture(scope="module")
def whole_set(folder: Path) -> TrainingSet:
    return make_set(folder)


@pytest.mark.parametrize("size", [1, 4, 16])
def test_toolset_groups_put_each_query_once_into_a_small_valid_toolbox(
    folder: Path, size: int
) -> None:
    toolset = read_toolset(folder)
    groups = list(ToolsetGroups(toolset, ENCODER, size).draw_groups(random.Random(0)))
    ids = [query.record.id for queries, _ in groups for query in queries]
    assert sorted(map(str, ids)) == sorted(str(query.record.id) for query in toolset.queries)
    for queries, toolbox in groups:
        assert len(queries) <= size
        assert len(toolbox) <= MAX_TOOLS + 1
        for query in queries:
            PlanRequest(query.query, toolbox).validate(query.plan)
    if size == 16:
        assert len(groups) < len(ids) / 4


def test_toolset_groups_show_no_question_another_tool_that_it_may_need(folder: Path) -> None:
    toolset = read_toolset(folder)
    for queries, toolbox in ToolsetGroups(toolset, ENCODER, 16).draw_groups(random.Random(1)):
        for query in queries:
            listed = toolset.listed_tools[str(query.record.id)]
            foreign = set(toolbox.names) - {*listed, "no_evidence"}
            assert foreign.isdisjoint(query.query.split())


def test_toolset_refuses_a_second_tool_of_one_name_and_repeated_questions(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("dig a hole", [function("dig", ["what"], what="string")], [{"dig": {"what": ["hole"]}}]),
        ("dig 3", [function("dig", ["deep"], deep="integer")], [{"dig": {"deep": [3]}}]),
        ("Dig a hole!", [function("dig", ["what"], what="string")], [{"dig": {"what": ["hole"]}}]),
    ]
    leaderboard(tmp_path, "multiple", rows)
    source, refused = ToolsetSource(reader="bfcl", path=str(tmp_path)), Counter[str]()
    toolset = Toolset.read(source, frozenset(), set(), random.Random(0), refused)
    assert [query.query for query in toolset.queries] == ["dig a hole"]
    assert refused == {
        "bfcl: a tool with the name of a different tool": 1,
        "bfcl: a repeated question": 1,
    }


def test_toolset_limit_draws_the_same_five_queries_for_the_same_seed(folder: Path) -> None:
    limited = read_toolset(folder, limit=5)
    assert len(limited.queries) == 5
    assert limited.queries == read_toolset(folder, limit=5).queries
    assert len(read_toolset(folder).queries) == 49


def test_toolset_is_used_only_for_training_and_shares_prompt_heads(whole_set: TrainingSet) -> None:
    def is_foreign(example: Any) -> bool:
        return str(example.source).startswith("bfcl:")

    assert not any(map(is_foreign, whole_set.validation))
    plans = [row for row in whole_set.train if is_foreign(row) and row.task == "plan"]
    assert len(plans) == 48
    assert len({row.prompt.head for row in plans}) < len(plans) / 3
    # The prompt is the planner's, with plan cases of the tool-use set.
    assert any(row.prompt.tail.startswith("Plans for similar questions:") for row in plans)
    assert {row.task for row in whole_set.train if is_foreign(row)} > {"plan", "identify_tools"}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Seal-Tools with two files that share a tool, and of which one is for measuring."""
    path = tmp_path_factory.mktemp("sealtools")
    names = ("sow", "dig", "mow")
    write_lines(path / "tool.jsonl", [seal_tool(name, ["what"], [], what="str") for name in names])
    questions_of = {
        "dev-dev.jsonl": ["sow beans", "sow roses", "dig holes"],
        "test_out_domain-dev.jsonl": ["dig trenches", "mow lawns"],
    }
    for file, questions in questions_of.items():
        items = [
            (question, [seal_call(question.split()[0], [], what=question.split()[1])])
            for question in questions
        ]
        listed = ["sow", "dig"] if file == "dev-dev.jsonl" else ["mow"]
        seal_items(path / file, items, listed)
    return path


def test_tools_of_the_measuring_part_are_neither_called_nor_shown(split: Path) -> None:
    measuring = str(split / "test_out_domain-dev.jsonl")
    path = str(split / "dev-dev.jsonl")
    source = ToolsetSource(reader="sealtools", path=path, measuring=measuring)
    refused: Counter[str] = Counter()
    toolset = Toolset.read(source, frozenset(), set(), random.Random(0), refused)
    assert [query.query for query in toolset.queries] == ["sow beans", "sow roses"]
    assert refused == {"sealtools: a call of a test set's tool": 1}
    assert set(toolset.tools) == {"sow"}
    whole_source = ToolsetSource(reader="sealtools", path=path)
    whole = Toolset.read(whole_source, frozenset(), set(), random.Random(0), Counter())
    assert set(whole.tools) == {"sow", "dig"}


def test_plan_parser_sources_exclude_the_tools_of_the_measuring_part(
    split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ("sealtools", f"{split.name}/dev-dev.jsonl", f"{split.name}/test_out_domain-dev.jsonl")
    monkeypatch.setattr(public_sets, "SETS", (parts,))
    sources = list(public_sources(split.parent, ENCODER, random.Random(0)))
    assert {q.query for s in sources for q in s.queries} == {"sow beans", "sow roses"}
    assert {name for s in sources for name in s.toolbox.names} == {"sow", NO_EVIDENCE.name}


def test_toolset_with_a_measuring_part_contaminates_all_but_that_part(split: Path) -> None:
    source = {
        "reader": "sealtools",
        "path": str(split / "dev-dev.jsonl"),
        "measuring": str(split / "test_out_domain-dev.jsonl"),
    }
    (entry,) = make_set(split, toolsets=[source]).manifest["toolsets"]
    assert entry["contaminates"] == ["Seal-Tools except test_out_domain-dev.jsonl"]


def test_measuring_question_in_a_toolset_is_not_trained_on(whole_set: TrainingSet) -> None:
    questions = {
        question_key(line.removeprefix("Question: "))
        for example in whole_set.examples
        for line in str(example.prompt).split("\n")
        if line.startswith("Question: ")
    }
    assert question_key("prune onions in bed 1") not in questions
    assert question_key("water tulips in bed 2") in questions


def test_manifest_describes_each_toolset_and_what_it_contaminates(whole_set: TrainingSet) -> None:
    assert json.loads(json.dumps(whole_set.manifest)) == whole_set.manifest
    (entry,) = whole_set.manifest["toolsets"]
    assert entry["reader"] == "bfcl"
    assert entry["queries"] == 48
    assert entry["refused"] == {"bfcl: a test question": 1}
    assert entry["tools"] == len(VERBS)
    assert entry["contaminates"] == ["BFCL"]
    assert entry["licence"].startswith("Apache-2.0")
    counts = whole_set.manifest["examples"]["train.jsonl"]["sources"]
    assert counts["bfcl"] == entry["examples"]


def test_same_seed_gives_the_same_training_set_with_toolsets(
    folder: Path, whole_set: TrainingSet
) -> None:
    assert make_set(folder) == whole_set


def test_manifest_without_toolsets_lists_none(folder: Path) -> None:
    assert "toolsets" not in make_set(folder, toolsets=[]).manifest


def test_toolset_without_a_usable_query_is_refused(tmp_path: Path) -> None:
    rows: list[Row] = [("dig", [function("dig", ["what"], what="string")], [{"saw": {}}])]
    leaderboard(tmp_path, "multiple", rows)
    with pytest.raises(InputError, match=r"no query to plan for: 1 refused.*data\.toolsets"):
        read_toolset(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('reader = "hugging_face"', "no reader of tool-use sets .hugging_face."),
        ('reader = "bfcl"\npath = "nowhere"', 'nothing at "nowhere" in '),
        ('reader = "bfcl"\nmeasuring = "nowhere"', 'nothing at "nowhere" in '),
        ('reader = "bfcl"\ncopies = 0', "copies: 0 is not possible"),
    ],
    ids=["reader", "path", "measuring", "copies"],
)
def test_recipe_with_an_invalid_toolset_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = "" if "path" in line else 'path = "."\n'
    file = tmp_path / "recipe.toml"
    file.write_text(f'[data]\ndomain = "shopping"\n[[data.toolsets]]\n{path}{line}\n')
    with pytest.raises(InputError, match=message):
        Recipe.read(file)
