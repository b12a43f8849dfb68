from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import TrainingInputs, make_training_set
from casewright.finetune.examples.training_set import TrainingSet
from casewright.finetune.examples.ttg import TASK_NAMES
from casewright.finetune.folds import similarity_groups
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery, parse_plan
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.readers import toy_queries

ENCODER = HashingEncoder(256)
QUERIES = toy_queries()
POOLS = {
    "find": ToolPool(names=("search_shop", "look_for"), descriptions=("Looks for goods.",)),
    "fact": ToolPool(names=("ask_page",)),
}


def data_section(**settings: Any) -> DataSection:
    return DataSection.model_validate({"domain": "toy", "validation": 0.1, **settings})


def make_set(
    queries: Sequence[AnnotatedQuery] = QUERIES,
    test_questions: Sequence[str] = (),
    encoder: HashingEncoder = ENCODER,
    **settings: Any,
) -> TrainingSet:
    inputs = TrainingInputs(queries, SHOP, POOLS, measuring=test_questions)
    return make_training_set(data_section(**settings), inputs, encoder)


@pytest.fixture(scope="module")
def whole_set() -> TrainingSet:
    return make_set(ttg={"tasks_per_query": 4}, copies=2)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a source of sixty instructions."""
    file = tmp_path_factory.mktemp("instructions") / "tasks.jsonl"
    records = [
        {
            "instruction": f"Say which number comes after {n}, and why.",
            "input": suffix,
            "output": f"It is {n + 1}. One more than {n} is {n + 1}, {suffix}.",
        }
        for n in range(30)
        for suffix in ("my friend", "dear sir")
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return {"reader": "hugging_face", "path": str(file)}


def instructions_of(side: Sequence[TrainingExample]) -> list[TrainingExample]:
    return [example for example in side if example.task.startswith("instruction")]


def questions_of(example: TrainingExample) -> set[str]:
    """Return all questions in the prompt of an example, with its own question."""
    lines = str(example.prompt).split("\n")
    return {line.partition(": ")[2] for line in lines if line.startswith("Question: ")}


def test_every_query_gives_its_plan_and_secondary_tasks(whole_set: TrainingSet) -> None:
    tasks = Counter(example.task for example in whole_set.examples)
    assert set(tasks) == {"plan", *TASK_NAMES}
    by_query = Counter(example.source for example in whole_set.examples if example.task == "plan")
    assert by_query == {str(query.record.id): 2 for query in QUERIES}
    assert len({example.id for example in whole_set.examples}) == len(whole_set.examples)
    by_source = Counter(example.source for example in whole_set.examples)
    assert max(by_source.values()) == 8


def test_training_plans_call_only_tools_of_their_prompt(whole_set: TrainingSet) -> None:
    plans = [example for example in whole_set.examples if example.task == "plan"]
    for example in plans:
        tool_list = example.prompt.head.partition("\n\nTools:\n")[2].partition("\n\nRules:")[0]
        for tool in parse_plan(example.completion).tools:
            assert f"\n{tool}(" in f"\n{tool_list}"
    assert any("search_shop" in example.completion for example in plans)


def test_similar_queries_are_all_in_training_or_all_in_validation(whole_set: TrainingSet) -> None:
    sources = [
        {example.source for example in side} for side in (whole_set.train, whole_set.validation)
    ]
    assert sources[0].isdisjoint(sources[1])
    groups = similarity_groups([query.query for query in QUERIES], ENCODER)
    group_of = {str(query.record.id): g for query, g in zip(QUERIES, groups, strict=True)}
    sides = [{group_of[source] for source in side} for side in sources]
    assert sides[0].isdisjoint(sides[1])
    assert len(sources[1]) == round(0.1 * len(QUERIES))


def test_training_prompts_show_no_validation_query(whole_set: TrainingSet) -> None:
    held_out = {example.source for example in whole_set.validation}
    texts = {query.query for query in QUERIES if str(query.record.id) in held_out}
    assert [example.id for example in whole_set.train if questions_of(example) & texts] == []
    # The prompt of a validation example contains only its own validation question.
    for example in whole_set.validation:
        assert len(questions_of(example) & texts) <= 1
    assert any(len(questions_of(example)) > 2 for example in whole_set.train)


def test_measuring_queries_are_never_in_the_training_set(whole_set: TrainingSet) -> None:
    forbidden = [query.query for query in QUERIES[::9]]
    variants = [text.upper() + "  !" for text in forbidden]
    result = make_set(test_questions=variants)
    assert any(questions_of(example) & set(forbidden) for example in whole_set.examples)
    assert [row.id for row in result.examples if questions_of(row) & set(forbidden)] == []
    counts = result.manifest["queries"]
    others = [query for query in QUERIES if query.query not in forbidden]
    assert counts["left_out_for_measuring"] == len(QUERIES) - len(others)
    assert (counts["given"], counts["taken"]) == (len(QUERIES), len(others))


def test_training_set_manifest_counts_the_examples_and_is_plain_json(
    whole_set: TrainingSet,
) -> None:
    manifest = whole_set.manifest
    assert json.loads(json.dumps(manifest)) == manifest
    for name, side in (
        ("train.jsonl", whole_set.train),
        ("validation.jsonl", whole_set.validation),
    ):
        entry = manifest["examples"][name]
        assert entry["tasks"] == Counter(example.task for example in side)
        assert entry["sources"] == {"queries": len(side)}
        assert entry["all"] == manifest["files"][name]["rows"] == len(side)
    assert manifest["toolbox"]["fingerprint"] == SHOP.fingerprint()
    assert manifest["data"]["copies"] == 2
    assert manifest["instructions"] == {
        "pool": 0,
        "taken": 0,
        "per_planning_task": 0,
        "licences": {},
        "refused": {},
    }


def test_training_set_depends_only_on_the_seed() -> None:
    assert make_set(seed=3) == make_set(seed=3)
    first, second = make_set(seed=3), make_set(seed=4)
    assert first.train != second.train
    assert {row.source for row in first.validation} != {row.source for row in second.validation}


def test_other_queries_labels_or_settings_change_the_manifest() -> None:
    original = make_set()
    others = [
        make_set(QUERIES[:-1]),
        make_set([*QUERIES[:-1], replace(QUERIES[-1], label="other")]),
        make_set(tevo={"reword": 0}),
    ]
    manifests = [json.dumps(training_set.manifest) for training_set in [original, *others]]
    assert len(set(manifests)) == 4
    hashes = {training_set.manifest["queries"]["sha256"] for training_set in [original, *others]}
    assert len(hashes) == 3


def test_nothing_is_embedded_without_validation_and_plan_cases() -> None:
    encoder = HashingEncoder(256)
    fixed: dict[str, Any] = {"validation": 0, "tevo": {"enabled": False, "shots": 0}}
    assert make_set(encoder=encoder, **fixed).validation == ()
    assert encoder.calls == []
    make_set(encoder=encoder)
    assert encoder.calls != []


def test_equal_training_examples_are_kept_once() -> None:
    fixed: dict[str, Any] = {"tevo": {"enabled": False, "shots": 0}, "ttg": {"tasks_per_query": 1}}
    assert Counter(example.source for example in make_set(copies=3, **fixed).examples) == {
        str(query.record.id): 1 for query in QUERIES
    }


def test_queries_without_ids_are_numbered() -> None:
    nameless = [
        replace(query, record=query.record.model_copy(update={"id": None})) for query in QUERIES
    ]
    sources = {example.source for example in make_set(nameless).examples}
    assert sources == {f"query-{number}" for number in range(1, len(QUERIES) + 1)}


def test_two_queries_of_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="id 't0'"):
        make_set([*QUERIES, QUERIES[0]])


def test_invalid_gold_plan_is_refused_naming_the_query() -> None:
    invalid = AnnotatedQuery.read({"id": "w", "query": "what is it", "plan": "s1 = nothing()"})
    with pytest.raises(InputError, match=r"'w' \('what is it'\).*no tool nothing"):
        make_set([*QUERIES, invalid])


@pytest.mark.parametrize(
    ("change", "location"),
    [
        ({"id": "\ud800"}, r"Id or class of query '\\ud800'"),
        ({"class": "\ud800"}, "Id or class of query 'w'"),
        ({"tools_extra": [{"name": "x", "description": "\ud800"}]}, "from 'w'"),
    ],
    ids=["id", "class", "tool"],
)
def test_text_with_a_lone_surrogate_is_refused_naming_its_place(
    change: dict[str, Any], location: str
) -> None:
    record = {"id": "w", "query": "what is it", "plan": "s1 = no_evidence()", **change}
    with pytest.raises(InputError, match=f"{location}.*cannot be written as UTF-8"):
        make_set([*QUERIES, AnnotatedQuery.read(record)])


def test_training_set_of_no_queries_is_refused() -> None:
    with pytest.raises(InputError, match="0 were given"):
        make_set([])
    with pytest.raises(InputError, match="1 were given, and 1 are test questions"):
        make_set(QUERIES[:1], test_questions=[QUERIES[0].query])


def test_training_set_takes_the_number_of_queries_set_by_sampling() -> None:
    sampled = make_set(sampling={"method": "dqs", "initial": 10, "size": 20})
    assert sampled.manifest["queries"]["taken"] == 20
    assert len({example.source for example in sampled.examples}) == 20


@pytest.mark.parametrize("copies", [1, 2])
def test_instruction_share_does_not_depend_on_the_number_of_planning_tasks(
    source: dict[str, str], copies: int
) -> None:
    mixed = make_set(instructions={"share": 0.4, "sources": [source]}, copies=copies)
    assert len(instructions_of(mixed.examples)) == 24
    planning = len(mixed.examples) - 24
    entry = mixed.manifest["instructions"]
    assert (entry["pool"], entry["taken"]) == (60, 24)
    assert entry["per_planning_task"] == round(24 / planning, 4)
    assert entry["licences"] == {"tasks.jsonl": "as the data set's page says"}
    tasks = {example.task for example in instructions_of(mixed.examples)}
    assert tasks == {"instruction", "instruction:evolved"}


def test_instructions_of_one_record_are_all_in_training_or_validation(
    source: dict[str, str],
) -> None:
    settings = {"share": 0.8, "sources": [source]}
    mixed = make_set(instructions=settings, validation=0.4)
    sides = [
        {example.source for example in instructions_of(side)}
        for side in (mixed.train, mixed.validation)
    ]
    assert sides[0].isdisjoint(sides[1])
    assert all(len(side) > 3 for side in sides)


def test_zero_tasks_per_query_gives_a_set_of_instructions_only(source: dict[str, str]) -> None:
    mixed = make_set(
        ttg={"tasks_per_query": 0},
        instructions={"share": 1, "sources": [source]},
        corpus={"copies": 1, "domain_guests": 5},
    )
    assert len(mixed.examples) == len(instructions_of(mixed.examples)) == 60
    assert mixed.manifest["queries"]["taken"] == 0
    assert mixed.manifest["instructions"]["per_planning_task"] is None
    assert "corpus" not in mixed.manifest


def test_settings_for_an_empty_training_set_are_refused() -> None:
    with pytest.raises(ValidationError, match="are both 0"):
        data_section(ttg={"tasks_per_query": 0})
