"""New queries by a chat model: its prompts, the checks of its answers, and its limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from casewright.finetune.queries.query_writer import (
    PlanKind,
    QueryWriter,
    answer_objects,
    plan_kinds,
    read_answer_object,
)
from casewright.planner import AnnotatedQuery, PlanRequest
from casewright.tools import Toolbox
from tests.planner.helpers import DESK, DESK_PLAN, OWN_PLAN, PAGE_PLAN, SHOP, make_queries
from tests.planner.models import HangingModel, ScriptedModel, scripted
from tests.support.encoders import HashingEncoder

SHAPE = 's1 = find(query="")'
FIND_KIND = PlanKind(SHAPE, "", ())


def query_record(query: str, plan: str, **context: Any) -> dict[str, Any]:
    return {"query": query, "context": context, "plan": plan}


def find(item: str) -> dict[str, Any]:
    return query_record(f"do you have {item}", f's1 = find(query="{item}")')


def array(*objects: Any) -> str:
    return json.dumps(list(objects))


def writer(
    model: ScriptedModel,
    queries: Sequence[AnnotatedQuery] = (),
    toolbox: Toolbox = SHOP,
    excluded: Sequence[str] = (),
    seconds: float = 20,
) -> QueryWriter:
    encoder = HashingEncoder(512)
    return QueryWriter(model, toolbox, queries, encoder, excluded=excluded, seconds=seconds)


def test_plan_kinds_lists_shapes_by_frequency_and_then_unused_tools() -> None:
    rows: list[Any] = [
        ("do you sell mugs", 's1 = find(query="mugs")', {}),
        ("is it red", PAGE_PLAN, {"p": 1}),
    ]
    others: list[Any] = [
        ("do you sell rugs", 's1 = find(query="rugs")', {}),
        ("may I return it", DESK_PLAN, {}),
    ]
    kinds = plan_kinds(make_queries([rows[1], rows[0], *others]), SHOP)
    assert [kind.name for kind in kinds] == [
        SHAPE,
        PAGE_PLAN,
        DESK_PLAN,
        "any with own",
        "any with no_evidence",
    ]
    assert [example["query"] for example in kinds[0].examples] == [
        "do you sell mugs",
        "do you sell rugs",
    ]


def test_plan_kinds_without_queries_lists_each_tool() -> None:
    kinds = plan_kinds([], SHOP)
    assert [kind.tool for kind in kinds] == list(SHOP.names)
    assert kinds[0].examples[0]["query"] == "I need a lamp"


def test_plan_kinds_omits_queries_that_the_toolbox_cannot_run() -> None:
    kinds = plan_kinds(make_queries(), SHOP.without("own", "fact"))
    assert {kind.name for kind in kinds} == {SHAPE, DESK_PLAN, "s1 = no_evidence()"}


@pytest.mark.parametrize(
    "answer",
    [
        array(find("mugs"), find("rugs")),
        "Sure!\n```json\n" + json.dumps([find("mugs"), find("rugs")], indent=2) + "\n```\nEnjoy.",
        json.dumps(find("mugs")) + "\n" + json.dumps(find("rugs")),
        json.dumps({"queries": [find("mugs"), find("rugs")]}),
        array(find("mugs"), find("rugs"), find("tents"))[:-30],
        "{ not this } " + array(find("mugs"), find("rugs")),
    ],
    ids=["list", "fence", "lines", "wrapped", "cut-off", "braces"],
)
def test_written_objects_reads_json_objects_amid_other_text(answer: str) -> None:
    assert list(answer_objects(answer)) == [find("mugs"), find("rugs")]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "answer",
    ["", "no", '{"a":' * 100_000, "{" * 500_000, '{"a": "' * 100_000, '{"a": ' + "9" * 10_000],
    ids=["empty", "prose", "nested", "braces", "open-texts", "huge-number"],
)
def test_written_objects_reads_hostile_answers_in_time(answer: str) -> None:
    assert list(answer_objects(answer)) == []


def test_read_written_returns_a_valid_query_as_annotated() -> None:
    record = read_answer_object(find("wool socks"), FIND_KIND, SHOP, None)
    assert record is not None
    query = AnnotatedQuery.read(record)
    assert (query.label, str(query.plan)) == ("find", 's1 = find(query="wool socks")')


def test_read_written_accepts_a_plan_as_a_list_of_lines() -> None:
    kind = PlanKind("", "own", ())
    lines = OWN_PLAN.format("tent").split("\n")
    record = read_answer_object({"query": "how big is my tent", "plan": lines}, kind, SHOP, None)
    assert record is not None
    assert record["plan"] == OWN_PLAN.format("tent")
    assert record["context"] == {}


@pytest.mark.parametrize(
    "record",
    [
        {"query": 3, "plan": SHAPE},
        {"query": "x"},
        query_record("x" * 2000, SHAPE),
        query_record("x", SHAPE * 1000),
        {"query": "x", "context": [], "plan": SHAPE},
        query_record("  ", SHAPE),
        query_record("a\0b", SHAPE),
        query_record("x", SHAPE, page="y" * 3000),
        query_record("x", SHAPE, secret="y"),
        query_record("x", "look it up"),
        query_record("x", "s1 = __import__(name=question)"),
        query_record("x", 's1 = own(query="socks")'),
        query_record("x", DESK_PLAN),
        query_record("warm things", 's1 = find(query="wool socks")'),
    ],
    ids=str,
)
def test_read_written_refuses_a_query_that_fails_a_check(record: dict[str, Any]) -> None:
    assert read_answer_object(record, FIND_KIND, SHOP, {"page"}) is None


STOVES = make_queries()[:1]


def test_query_writer_prompt_shows_tools_shape_examples_and_earlier_queries() -> None:
    model = scripted(array(find("mugs")), array(find("tall glasses")), *["no"] * 99)
    records = writer(model, STOVES).write(2).records
    system, human = (str(message.content) for message in model.requests[1])
    assert all(tool.signature() in system for tool in SHOP)
    assert SHAPE in human
    assert f'"query": "{STOVES[0].query}"' in human
    assert f"- {records[0]['query']}" in human
    assert "Write 1 as a JSON list" in human


def test_query_writer_keeps_only_valid_new_and_different_queries() -> None:
    known = STOVES[0].query
    product = known.removeprefix("do you sell ")
    model = scripted(
        array(
            query_record(known.upper(), f's1 = find(query="{product.upper()}")'),
            query_record(f"{product} do you sell", f's1 = find(query="{product}")'),
            query_record("do you sell garden tables", 's1 = find(query="garden tables")'),
            query_record("do you sell garden tables?", 's1 = find(query="garden tables")'),
        ),
        array(query_record("kept apart", 's1 = find(query="apart")'), find("mugs"), find("rugs")),
        *["no"] * 99,
    )
    records = writer(model, STOVES, excluded=["kept apart"]).write(2).records
    assert [record["query"] for record in records] == [
        "do you sell garden tables",
        "do you have mugs",
    ]
    for record in records:
        query = AnnotatedQuery.read(record)
        PlanRequest(query.query, SHOP, query.record.context).validate(query.plan)
    assert len({record["id"] for record in records}) == 2
    assert records[0]["source"] == "written by scripted"


def test_query_writer_bounds_its_calls_when_no_answer_is_usable() -> None:
    model = scripted(*["I would rather not."] * 99)
    assert writer(model, toolbox=Toolbox([DESK])).write(4).records == []
    # Each of the two tools gets a call for its queries and two further attempts.
    assert len(model.requests) == 6


def test_query_writer_stops_after_repeated_model_failures() -> None:
    model = scripted(array(find("mugs")), *[ValueError("no credit")] * 9)
    report = writer(model, STOVES).write(2)
    assert (len(report.records), len(model.requests)) == (1, 4)
    assert "no credit" in report.stop_reason


def test_query_writer_continues_after_a_single_model_failure() -> None:
    model = scripted(ValueError("busy"), array(find("mugs"), find("rugs")), *["no"] * 99)
    report = writer(model, STOVES).write(2)
    assert (len(report.records), report.stop_reason) == (2, "")


def test_query_writer_stops_when_the_model_hangs() -> None:
    model = HangingModel(answers=[])
    report = writer(model, make_queries(), seconds=0.1).write(2)
    model.released.set()
    assert report.records == []
    assert "gave no answer within 0.1 s" in report.stop_reason
