"""New queries by a chat model: which are wanted, which are kept, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from casewright.finetune.queries.query_writer import (
    Dropped,
    QueryWriter,
    UnusableError,
    Wanted,
    WriterSettings,
    WritingReport,
    read_written,
    wanted_shapes,
    written_objects,
)
from casewright.planner import AnnotatedQuery, PlanRequest
from casewright.tools import Toolbox
from tests.planner.helpers import ASKED, DESK, OWNED, PAGE, SHOP, annotated
from tests.planner.models import HangingModel, ScriptedModel, scripted
from tests.support.encoders import HashingEncoder

SHAPE = 's1 = find(query="")'
FINDING = Wanted(SHAPE, "", ())


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
    **settings: Any,
) -> QueryWriter:
    given = {"per_shape": 2, "per_request": 2, "seconds": 20, **settings}
    chosen = WriterSettings.model_validate(given)
    return QueryWriter(model, toolbox, queries, HashingEncoder(512), chosen, apart=apart)


def written(made: QueryWriter, already: Sequence[Any] = ()) -> tuple[list[Any], WritingReport]:
    taken: list[Any] = []
    return taken, made.write(taken.append, already)


def test_shapes_are_wanted_by_frequency_and_tools_without_a_query_by_themselves() -> None:
    rows: list[Any] = [
        ("do you sell mugs", 's1 = find(query="mugs")', {}),
        ("is it red", PAGE, {"p": 1}),
    ]
    more: list[Any] = [
        ("do you sell rugs", 's1 = find(query="rugs")', {}),
        ("may I return it", ASKED, {}),
    ]
    found = wanted_shapes(annotated([rows[1], rows[0], *more]), SHOP)
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
    limited = wanted_shapes(annotated([*rows, *more]), SHOP, most=1)
    assert [wanted.name for wanted in limited] == [SHAPE, "any with own", "any with no_evidence"]


def test_a_toolbox_without_any_query_is_written_for_tool_by_tool() -> None:
    found = wanted_shapes([], SHOP)
    assert [wanted.tool for wanted in found] == list(SHOP.names)
    assert found[0].examples[0]["query"] == "I need a lamp"


def test_queries_that_the_toolbox_cannot_run_are_no_examples() -> None:
    found = wanted_shapes(annotated(), SHOP.without("own", "fact"))
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
    query = AnnotatedQuery.read(found)
    assert (query.label, str(query.plan)) == ("find", 's1 = find(query="wool socks")')


def test_a_plan_may_be_a_list_of_lines_in_a_fence() -> None:
    wanted = Wanted("", "own", ())
    lines = OWNED.format("tent").split("\n")
    found = read_written({"query": "how big is my tent", "plan": lines}, wanted, SHOP, None)
    assert found["plan"] == OWNED.format("tent")
    assert found["context"] == {}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"query": 3, "plan": SHAPE}, Dropped.FORM),
        ({"query": "x"}, Dropped.FORM),
        (one("x" * 2000, SHAPE), Dropped.FORM),
        (one("x", SHAPE * 1000), Dropped.FORM),
        ({"query": "x", "context": [], "plan": SHAPE}, Dropped.FORM),
        (one("  ", SHAPE), Dropped.REQUEST),
        (one("a\0b", SHAPE), Dropped.REQUEST),
        (one("x", SHAPE, page="y" * 3000), Dropped.REQUEST),
        (one("x", SHAPE, secret="y"), Dropped.FIELD),
        (one("x", "look it up"), Dropped.NO_PLAN),
        (one("x", "s1 = __import__(name=question)"), Dropped.INVALID),
        (one("x", 's1 = own(query="socks")'), Dropped.INVALID),
        (one("x", ASKED), Dropped.SHAPE),
        (one("warm things", 's1 = find(query="wool socks")'), Dropped.SPAN),
    ],
    ids=str,
)
def test_what_fails_a_check_is_not_taken(bad: dict[str, Any], why: Dropped) -> None:
    with pytest.raises(UnusableError) as told:
        read_written(bad, FINDING, SHOP, {"page"})
    assert told.value.why is why


def test_the_model_is_shown_tools_shape_examples_and_what_is_there() -> None:
    model = scripted(listed(find("mugs")), listed(find("tall glasses")))
    made = writer(model, annotated(), shapes=1, per_request=1, toolbox=SHOP)
    taken, _ = written(made)
    system, human = (str(message.content) for message in model.heard[1])
    assert all(tool.signature() in system for tool in SHOP)
    assert SHAPE in human
    assert '"query": "do you sell camping stoves"' in human
    assert f"- {taken[0]['query']}" in human
    assert "Write 1 as a JSON list" in human


def test_what_is_written_is_valid_new_and_unalike() -> None:
    known = "do you sell wool socks"
    model = scripted(
        listed(
            one(known.upper(), 's1 = find(query="WOOL SOCKS")'),
            one("wool socks do you sell", 's1 = find(query="wool socks")'),
            one("do you sell garden tables", 's1 = find(query="garden tables")'),
            one("do you sell garden tables?", 's1 = find(query="garden tables")'),
        ),
        listed(one("kept apart", 's1 = find(query="apart")'), find("mugs"), find("rugs")),
    )
    made = writer(model, annotated(), shapes=1, apart=["kept apart"])
    taken, report = written(made)
    assert [record["query"] for record in taken] == [
        "do you sell garden tables",
        "do you have mugs",
    ]
    for record in taken:
        query = AnnotatedQuery.read(record)
        PlanRequest(query.query, SHOP, query.record.context).validate(query.plan)
    assert len({record["id"] for record in taken}) == 2
    assert taken[0]["source"] == "written by scripted"
    assert report.dropped == {Dropped.KNOWN: 2, Dropped.ALIKE: 2, Dropped.SURPLUS: 1}
    assert (report.written[SHAPE], report.calls, report.missing.total()) == (2, 2, 0)


def test_calls_are_bounded_where_nothing_is_usable() -> None:
    model = scripted(*["I would rather not."] * 99)
    taken, report = written(writer(model, toolbox=Toolbox([DESK]), per_shape=4))
    # Two calls for four queries and two more, for each of the two tools.
    assert (taken, report.calls, report.missing.total()) == ([], 8, 8)


def test_a_later_run_asks_only_for_what_is_missing() -> None:
    first = scripted(listed(find("mugs")), "no", "no")
    taken, report = written(writer(first, annotated(), shapes=1))
    assert (report.written, report.missing) == ({SHAPE: 1}, {SHAPE: 1})
    again = scripted(listed(find("mugs"), find("rugs")))
    more, report = written(writer(again, annotated(), shapes=1), taken)
    assert [record["query"] for record in more] == ["do you have rugs"]
    assert (report.calls, report.dropped) == (1, {Dropped.KNOWN: 1})


def test_a_model_that_fails_is_asked_no_more() -> None:
    model = scripted(listed(find("mugs")), *[ValueError("no credit")] * 9)
    taken, report = written(writer(model, annotated(), shapes=2))
    assert (len(taken), report.calls, report.failed) == (1, 4, 3)
    assert "no credit" in report.stopped


def test_a_failure_now_and_then_is_told_and_gone_on_from() -> None:
    model = scripted(ValueError("busy"), listed(find("mugs"), find("rugs")))
    made = writer(model, annotated(), shapes=1)
    taken, report = written(made)
    assert (len(taken), report.failed, report.stopped) == (2, 1, "")
    assert "busy" in report.failure


def test_a_model_that_hangs_ends_within_its_time() -> None:
    model = HangingModel(answers=[])
    taken, report = written(writer(model, annotated(), seconds=0.1))
    model.released.set()
    assert (taken, report.failed) == ([], 3)
    assert "gave no answer within 0.1 s" in report.stopped
