"""New queries by a chat model: which are wanted, which are kept, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from casewright.finetune.queries.query_writer import (
    PlanKind,
    QueryWriter,
    plan_kinds,
    read_written,
    written_objects,
)
from casewright.planner import AnnotatedQuery, PlanRequest
from casewright.tools import Toolbox
from tests.planner.helpers import ASKED, DESK, OWNED, PAGE, SHOP, annotated
from tests.planner.models import HangingModel, ScriptedModel, scripted
from tests.support.encoders import HashingEncoder

SHAPE = 's1 = find(query="")'
FINDING = PlanKind(SHAPE, "", ())


def one(query: str, plan: str, **context: Any) -> dict[str, Any]:
    return {"query": query, "context": context, "plan": plan}


def find(thing: str) -> dict[str, Any]:
    return one(f"do you have {thing}", f's1 = find(query="{thing}")')


def listed(*objects: Any) -> str:
    return json.dumps(list(objects))


def writer(
    model: ScriptedModel,
    queries: Sequence[AnnotatedQuery] = (),
    toolbox: Toolbox = SHOP,
    apart: Sequence[str] = (),
    seconds: float = 20,
) -> QueryWriter:
    encoder = HashingEncoder(512)
    return QueryWriter(model, toolbox, queries, encoder, excluded=apart, seconds=seconds)


def test_shapes_are_wanted_by_frequency_and_tools_without_a_query_by_themselves() -> None:
    rows: list[Any] = [
        ("do you sell mugs", 's1 = find(query="mugs")', {}),
        ("is it red", PAGE, {"p": 1}),
    ]
    more: list[Any] = [
        ("do you sell rugs", 's1 = find(query="rugs")', {}),
        ("may I return it", ASKED, {}),
    ]
    found = plan_kinds(annotated([rows[1], rows[0], *more]), SHOP)
    assert [wanted.name for wanted in found] == [
        SHAPE,
        PAGE,
        ASKED,
        "any with own",
        "any with no_evidence",
    ]
    assert [example["query"] for example in found[0].examples] == [
        "do you sell mugs",
        "do you sell rugs",
    ]


def test_a_toolbox_without_any_query_is_written_for_tool_by_tool() -> None:
    found = plan_kinds([], SHOP)
    assert [wanted.tool for wanted in found] == list(SHOP.names)
    assert found[0].examples[0]["query"] == "I need a lamp"


def test_queries_that_the_toolbox_cannot_run_are_no_examples() -> None:
    found = plan_kinds(annotated(), SHOP.without("own", "fact"))
    assert {wanted.name for wanted in found} == {SHAPE, ASKED, "s1 = no_evidence()"}


@pytest.mark.parametrize(
    "answer",
    [
        listed(find("mugs"), find("rugs")),
        "Sure!\n```json\n" + json.dumps([find("mugs"), find("rugs")], indent=2) + "\n```\nEnjoy.",
        json.dumps(find("mugs")) + "\n" + json.dumps(find("rugs")),
        json.dumps({"queries": [find("mugs"), find("rugs")]}),
        listed(find("mugs"), find("rugs"), find("tents"))[:-30],
        "{ not this } " + listed(find("mugs"), find("rugs")),
    ],
    ids=["list", "fence", "lines", "wrapped", "cut-off", "braces"],
)
def test_objects_are_read_whatever_stands_around_them(answer: str) -> None:
    assert list(written_objects(answer)) == [find("mugs"), find("rugs")]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "answer",
    ["", "no", '{"a":' * 100_000, "{" * 500_000, '{"a": "' * 100_000, '{"a": ' + "9" * 10_000],
    ids=["empty", "prose", "nested", "braces", "open-texts", "huge-number"],
)
def test_any_answer_is_read_in_time(answer: str) -> None:
    assert list(written_objects(answer)) == []


def test_what_passes_every_check_is_an_annotated_query() -> None:
    found = read_written(find("wool socks"), FINDING, SHOP, None)
    assert found is not None
    query = AnnotatedQuery.read(found)
    assert (query.label, str(query.plan)) == ("find", 's1 = find(query="wool socks")')


def test_a_plan_may_be_a_list_of_lines_in_a_fence() -> None:
    wanted = PlanKind("", "own", ())
    lines = OWNED.format("tent").split("\n")
    found = read_written({"query": "how big is my tent", "plan": lines}, wanted, SHOP, None)
    assert found is not None
    assert found["plan"] == OWNED.format("tent")
    assert found["context"] == {}


@pytest.mark.parametrize(
    "bad",
    [
        {"query": 3, "plan": SHAPE},
        {"query": "x"},
        one("x" * 2000, SHAPE),
        one("x", SHAPE * 1000),
        {"query": "x", "context": [], "plan": SHAPE},
        one("  ", SHAPE),
        one("a\0b", SHAPE),
        one("x", SHAPE, page="y" * 3000),
        one("x", SHAPE, secret="y"),
        one("x", "look it up"),
        one("x", "s1 = __import__(name=question)"),
        one("x", 's1 = own(query="socks")'),
        one("x", ASKED),
        one("warm things", 's1 = find(query="wool socks")'),
    ],
    ids=str,
)
def test_what_fails_a_check_is_not_taken(bad: dict[str, Any]) -> None:
    assert read_written(bad, FINDING, SHOP, {"page"}) is None


STOVES = annotated()[:1]


def test_the_model_is_shown_tools_shape_examples_and_what_is_there() -> None:
    model = scripted(listed(find("mugs")), listed(find("tall glasses")), *["no"] * 99)
    records = writer(model, STOVES).write(2).records
    system, human = (str(message.content) for message in model.heard[1])
    assert all(tool.signature() in system for tool in SHOP)
    assert SHAPE in human
    assert f'"query": "{STOVES[0].query}"' in human
    assert f"- {records[0]['query']}" in human
    assert "Write 1 as a JSON list" in human


def test_what_is_written_is_valid_new_and_unalike() -> None:
    known = STOVES[0].query
    thing = known.removeprefix("do you sell ")
    model = scripted(
        listed(
            one(known.upper(), f's1 = find(query="{thing.upper()}")'),
            one(f"{thing} do you sell", f's1 = find(query="{thing}")'),
            one("do you sell garden tables", 's1 = find(query="garden tables")'),
            one("do you sell garden tables?", 's1 = find(query="garden tables")'),
        ),
        listed(one("kept apart", 's1 = find(query="apart")'), find("mugs"), find("rugs")),
        *["no"] * 99,
    )
    records = writer(model, STOVES, apart=["kept apart"]).write(2).records
    assert [record["query"] for record in records] == [
        "do you sell garden tables",
        "do you have mugs",
    ]
    for record in records:
        query = AnnotatedQuery.read(record)
        PlanRequest(query.query, SHOP, query.record.context).validate(query.plan)
    assert len({record["id"] for record in records}) == 2
    assert records[0]["source"] == "written by scripted"


def test_calls_are_bounded_where_nothing_is_usable() -> None:
    model = scripted(*["I would rather not."] * 99)
    assert writer(model, toolbox=Toolbox([DESK])).write(4).records == []
    # A call for four queries and two more, for each of the two tools.
    assert len(model.heard) == 6


def test_a_model_that_fails_is_asked_no_more() -> None:
    model = scripted(listed(find("mugs")), *[ValueError("no credit")] * 9)
    report = writer(model, STOVES).write(2)
    assert (len(report.records), len(model.heard)) == (1, 4)
    assert "no credit" in report.stopped


def test_a_failure_now_and_then_is_gone_on_from() -> None:
    model = scripted(ValueError("busy"), listed(find("mugs"), find("rugs")), *["no"] * 99)
    report = writer(model, STOVES).write(2)
    assert (len(report.records), report.stopped) == (2, "")


def test_a_model_that_hangs_ends_within_its_time() -> None:
    model = HangingModel(answers=[])
    report = writer(model, annotated(), seconds=0.1).write(2)
    model.released.set()
    assert report.records == []
    assert "gave no answer within 0.1 s" in report.stopped
