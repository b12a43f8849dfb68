"""Readers of tool-use sets: the plans of each format, and the errors for other files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.tool_sets.calls import Query
from casewright.finetune.tool_sets.registry import READERS, reader, tool_queries
from casewright.tools import NO_EVIDENCE
from tests.support.instruction_files import (
    api,
    described,
    function,
    leaderboard,
    write_list,
)


def read_set(name: str, path: Path) -> tuple[list[Query], Counter[str]]:
    refused: Counter[str] = Counter()
    queries = tool_queries(name, path, refused)
    return queries, Counter({reason.removeprefix(f"{name}: "): n for reason, n in refused.items()})


def plans_of(queries: list[Query]) -> list[str]:
    return [str(query.plan) for query, _ in queries]


GARDEN = {
    "find-bed": described({"name": "Required. string. Its name."}, "Array[Object{bedId, soil}]"),
    "water": described(
        {
            "bedId": "Required. string. Which bed.",
            "litres": "integer. How much.",
            "how": "string. One of: [hose, can]. With what.",
            "key": "Required. string. The secret key.",
        },
        "#Done",
    ),
}
BEGONIAS = "Water the begonias with a can, please."


def garden_api(items: list[tuple[str, list[tuple[str, str]]]]) -> dict[str, Any]:
    return api(
        GARDEN, items, components="#Done: Object{at, by: Object{name}}", Authentication={"key": "*"}
    )


def test_toolalpaca_becomes_plans_with_references_and_without_credentials(tmp_path: Path) -> None:
    find_call = ("find-bed", '{"name": "begonias"}')
    water_call = '{"bedId": ${bedId from find-bed}, "how": "can", "key": "8Bb", "litres": ""}'
    # References in the data set name functions by identifiers.
    functions = {"find_bed": GARDEN["find-bed"], "water": GARDEN["water"]}
    calls = [("find_bed", find_call[1]), ("water", water_call.replace("find-bed", "find_bed"))]
    record = {**garden_api([(f'"{BEGONIAS}"', calls)]), "Function_Description": functions}
    write_list(tmp_path / "eval_real.json", [record])
    ((query, toolbox),), refused = read_set("toolalpaca", tmp_path)
    assert not refused
    plan = 's1 = find_bed(name="begonias")\ns2 = water(bedId=s1.bedId, how="can")'
    assert (query.query, str(query.plan)) == (BEGONIAS, plan)
    assert toolbox["find_bed"].results == ("bedId", "soil")
    assert [p.name for p in toolbox["water"].parameters] == ["bedId", "litres", "how"]


def test_toolalpaca_functions_whose_names_are_no_identifiers_get_aliases(tmp_path: Path) -> None:
    calls = [("find-bed", '{"name": "begonias"}')]
    file = write_list(tmp_path / "eval.json", [garden_api([(BEGONIAS, calls)])])
    assert plans_of(read_set("toolalpaca", file)[0]) == ['s1 = find_x2d_bed(name="begonias")']


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("find-bed", '{"name": ${some name}}', "a value that the data set leaves open"),
        ("find-bed", '{"name": ', "a gold call's arguments are not JSON"),
        ("find-bed", '{"name": ""}', "a required argument is empty"),
        ("find-bed", '{"name": {"a": 1}}', "an object as an argument"),
        ("find-bed", '{"name": [["a"]]}', "a nested list or an object in a list"),
        ("find-bed", '{"name": "rose garden"}', "a text that has no word of the question"),
        ("find-bed", '{"size": 3, "name": "x"}', "an argument that is not declared"),
        ("water", '{"bedId": "B77"}', "an identifier whose words are not in the question"),
        ("water", '{"bedId": "can", "how": "bucket"}', "a value that is none of the declared"),
        ("water", '{"bedId": "can", "litres": "much"}', "a value of another type than declared"),
        ("water", '{"litres": 3}', "a required argument is not given"),
        ("getDetails", '{"Question": "Which?"}', "the user is asked for details"),
        ("dig", "{}", "a call of a tool that is not declared"),
    ],
)
def test_toolalpaca_calls_that_no_plan_can_express_are_counted_by_reason(
    tmp_path: Path, name: str, arguments: str, reason: str
) -> None:
    file = write_list(tmp_path / "eval.json", [garden_api([(BEGONIAS, [(name, arguments)])])])
    queries, refused = read_set("toolalpaca", file)
    assert not queries
    ((counted_reason, count),) = refused.items()
    assert counted_reason.startswith(reason)
    assert count == 1


FUNCTIONS = [
    function("bed.find", ["name"], name="string", rows="integer", wet="boolean"),
    function("bed.rate", ["bed"], bed={"type": "string", "enum": ["good", "bad"]}, note="string"),
]


def test_bfcl_reader_takes_the_first_allowed_value_and_omits_an_empty_one(tmp_path: Path) -> None:
    gold: list[dict[str, dict[str, list[Any]]]] = [
        {"bed.find": {"name": ["onions", "onion"], "rows": ["", 3], "wet": [True]}},
        {"bed.rate": {"bed": ["good"], "note": [""]}},
    ]
    leaderboard(tmp_path, "parallel_multiple", [("Find the onions and rate them", FUNCTIONS, gold)])
    assert plans_of(read_set("bfcl", tmp_path)[0]) == [
        's1 = bed_x2e_find(name="onions", wet=true)\ns2 = bed_x2e_rate(bed="good")'
    ]


def test_bfcl_reader_writes_optional_arguments_only_if_the_question_contains_them(
    tmp_path: Path,
) -> None:
    gold = [
        {"bed.find": {"name": ["onions"], "rows": [2, "", 3]}},
        {"bed.rate": {"bed": ["good"], "note": ["ripe", ""]}},
    ]
    leaderboard(tmp_path, "multiple", [("Are the onions in 3 rows good?", FUNCTIONS, gold)])
    assert plans_of(read_set("bfcl", tmp_path)[0]) == [
        's1 = bed_x2e_find(name="onions", rows=3)\ns2 = bed_x2e_rate(bed="good")'
    ]


def test_bfcl_question_without_a_fitting_function_becomes_no_evidence(tmp_path: Path) -> None:
    leaderboard(tmp_path, "irrelevance", [("Who wrote it?", FUNCTIONS, None)])
    assert plans_of(read_set("bfcl", tmp_path)[0]) == ["s1 = no_evidence()"]


def test_bfcl_gold_plan_is_valid_for_its_own_tools(tmp_path: Path) -> None:
    gold = [{"bed.find": {"name": ["onions"]}}]
    leaderboard(tmp_path, "multiple", [("Find the onions", FUNCTIONS, gold)])
    ((query, toolbox),) = tool_queries("bfcl", tmp_path)
    query.record.request(toolbox).validate(query.plan)
    assert toolbox.names[-1] == NO_EVIDENCE.name


def test_unknown_reader_error_lists_the_readers_and_their_data_sources() -> None:
    with pytest.raises(InputError, match=r"no reader .*'alpaca'.*bfcl.*github\.com/Shishir"):
        reader("alpaca")


@pytest.mark.parametrize("name", sorted(READERS))
def test_tool_set_reader_error_names_a_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.jsonl?.*(Give|folder)"):
        read_set(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("toolalpaca", "x.jsonl", '{"Instructions": \n', "line 1 is no JSON: "),
        ("toolalpaca", "x.jsonl", "3\n", "line 1: Input should be a valid dict"),
        ("toolalpaca", "x.json", '[{"Instructions": 3}]', "record 1: Instructions: .* list"),
        ("toolalpaca", "x.json", "[3", "must be one JSON list of objects"),
        (
            "toolalpaca",
            "x.json",
            '[{"Instructions": ["a"], "Golden_Answers": []}]',
            "record 1 has 1",
        ),
        ("bfcl", "BFCL_v4_irrelevance.json", '{"id": "a", "question": []}', "line 1"),
        ("bfcl", "BFCL_v4_multiple.json", '{"id": "a"}', r"possible_answer.* does not exist"),
        ("bfcl", "other.json", "", "none of the files that are read"),
    ],
)
def test_tool_set_reader_error_names_an_invalid_file_and_the_place(
    tmp_path: Path, name: str, file: str, text: str, message: str
) -> None:
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_set(name, path)
    assert file in str(caught.value)


@pytest.mark.skipif("CASEWRIGHT_DATA" not in os.environ, reason="CASEWRIGHT_DATA is not set")
def test_published_sets_give_the_documented_numbers_of_queries() -> None:
    data = Path(os.environ["CASEWRIGHT_DATA"])
    sets = {name: read_set(name, data / name)[0] for name in ("toolalpaca", "bfcl")}
    assert {name: len(queries) for name, queries in sets.items()} == {
        "toolalpaca": 168,
        "bfcl": 651,
    }
    for query, toolbox in (pair for queries in sets.values() for pair in queries):
        query.record.request(toolbox).validate(query.plan)
