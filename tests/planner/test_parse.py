from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from casewright.errors import PlanError
from casewright.planner import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Step,
    StepRef,
    format_plan,
    parse_plan,
)
from tests.planner.strategies import PLANS


def parse_value(text: str) -> Any:
    return parse_plan(f"s1 = a(x={text})").steps[0].argument("x")


VALUES = [
    ('"galaxy phone"', Literal("galaxy phone")),
    ('""', Literal("")),
    (r'"a \"quoted\" \\ word"', Literal('a "quoted" \\ word')),
    (r'"tab\t, line\n, \u00e9, \ud83d\ude00"', Literal("tab\t, line\n, é, 😀")),
    ('"), s2 = evil(x="', Literal("), s2 = evil(x=")),
    ('"\u2028"', Literal("\u2028")),
    ("12", Literal(12)),
    ("-3", Literal(-3)),
    ("0", Literal(0)),
    ("1.5", Literal(1.5)),
    ("-0.25", Literal(-0.25)),
    ("1e3", Literal(1000.0)),
    ("2.5E-1", Literal(0.25)),
    ("true", Literal(True)),
    ("false", Literal(False)),
    ("question", QuestionRef()),
    ("context.product_id", ContextRef("product_id")),
    ("context._x1", ContextRef("_x1")),
    ("s1.order_id", StepRef(1, "order_id", 0)),
    ("s12[3].title", StepRef(12, "title", 3)),
    ("[]", ListValue(())),
    ('["red", 1, true]', ListValue((Literal("red"), Literal(1), Literal(True)))),
    (
        "[question, context.a, s1[2].b]",
        ListValue((QuestionRef(), ContextRef("a"), StepRef(1, "b", 2))),
    ),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_parse_plan_reads_every_form_of_a_value(text: str, value: Any) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_every_form_of_a_value_is_restored_from_its_text(text: str, value: Any) -> None:
    assert parse_value(str(value)) == value


@settings(deadline=None)
@given(PLANS)
def test_plan_is_restored_from_its_text(plan: Plan) -> None:
    assert parse_plan(str(plan)) == plan


@settings(deadline=None)
@given(PLANS)
def test_plan_text_has_one_line_per_step(plan: Plan) -> None:
    lines = format_plan(plan).split("\n")
    assert len(lines) == len(plan.steps)
    assert all(line.startswith(f"s{n} = ") for n, line in enumerate(lines, 1))


def test_plan_with_two_steps_is_parsed_and_formatted() -> None:
    text = 's1 = find(query="wool socks", months=12)\ns2 = fact(item_id=s1[1].item_id)'
    plan = parse_plan(text)
    assert plan == Plan(
        (
            Step("find", (("query", Literal("wool socks")), ("months", Literal(12)))),
            Step("fact", (("item_id", StepRef(1, "item_id", 1)),)),
        )
    )
    assert plan.tools == ("find", "fact")
    assert str(plan) == text


def test_reference_to_the_first_result_is_written_without_an_index() -> None:
    assert parse_value("s1[0].a") == parse_value("s1.a")
    assert str(parse_value("s1[0].a")) == "s1.a"


def test_literal_one_differs_as_integer_float_and_boolean() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3


@pytest.mark.parametrize(
    "text",
    [
        's1=a(x="b")\ns2=c()',
        '  s1  =  a ( x  =  "b"  )  \r\n\n\t s2 = c( ) \n',
        '\n\ns1 = a(\tx="b")\n\n\ns2 = c()\n\n',
    ],
)
def test_parse_plan_ignores_space_around_tokens_and_blank_lines(text: str) -> None:
    assert str(parse_plan(text)) == 's1 = a(x="b")\ns2 = c()'


def test_the_references_of_a_step_include_those_in_lists() -> None:
    step = parse_plan("s1 = a(x=s3.b, y=[s1.c, 2, s2[1].d], z=question)").steps[0]
    assert list(step.references()) == [StepRef(3, "b"), StepRef(1, "c"), StepRef(2, "d", 1)]


def test_a_plan_error_survives_pickling() -> None:
    import pickle

    error = PlanError("Rule.", "Mend.", "s2")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.rule, copy.mend, copy.step, str(copy)) == ("Rule.", "Mend.", "s2", str(error))
