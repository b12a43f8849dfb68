from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import PlanError
from casewright.planner import Plan, parse_plan
from casewright.planner.parse import MAX_PLAN_CHARACTERS
from tests.planner.strategies import TOKEN_TEXTS, mutated
from tests.support.examples import at_most


def parse_error(text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    error = caught.value
    assert error.rule
    assert error.mend
    assert error.rule in str(error)
    assert error.mend in str(error)
    return error


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n"])
def test_plan_text_without_a_step_is_refused(text: str) -> None:
    error = parse_error(text)
    assert error.step is None
    assert "no step" in error.rule
    assert "no_evidence()" in error.mend


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("s2 = a()", "s1"),
        ("s0 = a()", "s1"),
        ("s01 = a()", "s1"),
        ("S1 = a()", "s1"),
        ("s1 = a()\ns3 = b()", "s2"),
        ("s1 = a()\ns1 = b()", "s2"),
        ("step1 = a()", "s1"),
    ],
)
def test_plan_whose_steps_are_not_numbered_from_one_is_refused(text: str, step: str) -> None:
    error = parse_error(text)
    assert error.step == step
    assert "without gaps" in error.rule
    assert step in error.mend


def test_step_with_an_argument_given_twice_is_refused() -> None:
    error = parse_error("s1 = a()\ns2 = b(x=1, y=2, x=3)")
    assert error.step == "s2"
    assert "x is given twice" in error.rule
    assert "once" in error.mend


@pytest.mark.parametrize(
    "value",
    [
        *("null", "None", "True", "NaN", "Infinity", "-Infinity", "'text'", "text", "", "{}"),
        *('{"a": 1}', "[[1]]", "[[]]", "[1,]", "[,1]", "[1", "01", "+1", "1.", ".5", "--1", "1_0"),
        *("0x1f", "1e", "1a", "1.2.3", "questions", "question.id", "question()", "context"),
        *("context.", "context.a.b", "context[0].a", "contexts.a", "s1", "s1.", "s0.a", "s01.a"),
        *("s1[-1].a", "s1[].a", "s1[0]", "s1[01].a", "s1[1.0].a", "s1.a.b", "s1 .a", "s1[s2.a].b"),
        *("s1.a + 1", '"a" "b"', '"a', '"a\\"', '"\\x41"', '"\\u12"', "trueish", "b(x=1)", "s1.é"),
    ],
)
def test_text_that_is_no_value_is_refused_as_an_argument(value: str) -> None:
    assert parse_error(f"s1 = a(x={value})").step == "s1"


@pytest.mark.parametrize("value", ['"a\nb"', '"a\tb"', '"\0"', '"\x1f"'])
def test_text_value_with_raw_control_characters_is_refused(value: str) -> None:
    assert parse_error(f"s1 = a(x={value})").step == "s1"


@pytest.mark.parametrize("value", ["1e999", "-1e999"])
def test_number_that_is_not_finite_is_refused(value: str) -> None:
    assert "finite" in parse_error(f"s1 = a(x={value})").rule


@pytest.mark.parametrize("value", [r'"\ud800"', r'"\udc00 a"', '"\ud800"'])
def test_text_value_with_a_lone_surrogate_is_refused(value: str) -> None:
    assert "surrogate" in parse_error(f"s1 = a(x={value})").rule


@pytest.mark.parametrize(
    "line",
    [
        *("a()", "s1", "s1 a()", "s1 =", "s1 = a", "s1 = a(", "s1 = a)", "s1 = ()", "s1 = a()()"),
        *("s1 = a() b", "s1 = a(),", "s1 = a(x)", "s1 = a(1)", "s1 = a(x=1 y=2)", "s1 = a(x=1,)"),
        *("s1 = a(,x=1)", "s1 = a(x==1)", "s1 = a.b()", "s1 = a-b()", "s1 = 1a()", "s1 = é()"),
        *(
            "s1 = a(1x=1)",
            "s1 = a(x-y=1)",
            "# no",
            "s1 = a() # no",
            "```",
            "s1: a()",
            "s1 = a(é=1)",
        ),
        *(
            "s1 = a()\rs2 = b()",
            "s1 = a()\u2028s2 = b()",
            "s1 = a(x=\n1)",
            "s1\xa0= a()",
            "\ufeffs1",
        ),
    ],
)
def test_line_that_is_no_step_is_refused(line: str) -> None:
    assert parse_error(line).step == "s1"


@settings(max_examples=at_most(300), deadline=None)
@given(st.text(st.characters()) | TOKEN_TEXTS | mutated() | TOKEN_TEXTS.map("s1 = a(x=".__add__))
def test_parse_plan_returns_a_plan_or_raises_plan_error_for_any_text(text: str) -> None:
    try:
        plan = parse_plan(text)
    except PlanError as error:
        str(error).encode()
        return
    assert isinstance(plan, Plan)
    assert parse_plan(str(plan)) == plan


HOSTILE_TEXTS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "s1 = a(x=" + "[" * n,
    "closed brackets": lambda n: "s1 = a(x=" + "[" * (n // 2) + "]" * (n // 2) + ")",
    "parentheses": lambda n: "s1 = " + "a(" * (n // 2),
    "digits": lambda n: "s1 = a(x=" + "1" * n + ")",
    "decimals": lambda n: "s1 = a(x=1." + "1" * n + "x)",
    "exponent": lambda n: "s1 = a(x=1e" + "1" * n + "_)",
    "number parts": lambda n: "s1 = a(x=" + "1" * (n // 3) + "." + "1" * (n // 3) + "e1" * (n // 6),
    "spaces": lambda n: "s1 = a(" + " " * n + "x",
    "space before the step": lambda n: " " * n + "x",
    "lines": lambda n: "\n" * n,
    "blank lines": lambda n: " \r\n" * (n // 3),
    "quotes": lambda n: "s1 = a(x=" + '"' * n,
    "escapes": lambda n: 's1 = a(x="' + "\\\\" * (n // 2),
    "escaped quotes": lambda n: 's1 = a(x="' + '\\"' * (n // 2),
    "unicode escapes": lambda n: 's1 = a(x="' + "\\u00e9" * (n // 6) + '")',
    "one long text": lambda n: 's1 = a(x="' + "é" * n + '")',
    "a long name": lambda n: "s1 = " + "a" * n,
    "a long step": lambda n: "s" + "1" * n,
    "a long reference": lambda n: "s1 = a(x=s" + "1" * n + ".a)",
    "a long field": lambda n: "s1 = a(x=context." + "a" * n + ".",
    "a long list": lambda n: "s1 = a(x=[" + "1, " * (n // 3) + "1])",
    "a list of texts": lambda n: "s1 = a(x=[" + '"a",' * (n // 4),
    "many arguments": lambda n: "s1 = a(" + ",".join(f"x{i}=1" for i in range(n // 9)),
    "many steps": lambda n: "\n".join(f"s{i} = a()" for i in range(1, n // 11)),
    "many steps, the last one bad": lambda n: (
        "\n".join(f"s{i} = a()" for i in range(1, n // 11)) + "\nx"
    ),
    "commas": lambda n: "s1 = a(x=[1" + "," * n,
    "NUL": lambda n: "s1 = a(x=" + "\0" * n,
    "lone surrogates": lambda n: 's1 = a(x="' + "\ud800" * n + '")',
}


def outcome(text: str) -> str:
    try:
        return type(parse_plan(text)).__name__
    except PlanError:
        return "PlanError"


def measure_seconds(text: str) -> float:
    """Return the least processor time of three runs, each long enough for the clock."""
    times = []
    for _ in range(3):
        started = time.process_time()
        for _ in range(3):
            outcome(text)
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("shape", HOSTILE_TEXTS)
def test_parse_plan_takes_linear_time(shape: str) -> None:
    small, large = HOSTILE_TEXTS[shape](20_000), HOSTILE_TEXTS[shape](80_000)
    measure_seconds(small)
    assert measure_seconds(large) < 9 * measure_seconds(small) + 0.004


@pytest.mark.parametrize("shape", HOSTILE_TEXTS)
def test_parse_plan_refuses_a_million_characters_within_five_seconds(shape: str) -> None:
    text = HOSTILE_TEXTS[shape](1_000_000)
    started = time.process_time()
    assert outcome(text) == "PlanError"
    assert time.process_time() - started < 5


@pytest.mark.parametrize("shape", ["brackets", "digits", "a long name", "a long step", "NUL"])
def test_plan_error_for_a_huge_text_is_short(shape: str) -> None:
    assert len(str(parse_error(HOSTILE_TEXTS[shape](100_000) + " x"))) < 400


def test_plan_text_beyond_the_maximum_of_characters_is_refused() -> None:
    long = "\n".join(f"s{number} = a()" for number in range(1, MAX_PLAN_CHARACTERS // 12))
    assert len(parse_plan(long[: 12 * 1000].rpartition("\n")[0]).steps) > 900
    error = parse_error(long + " " * MAX_PLAN_CHARACTERS)
    assert f"{MAX_PLAN_CHARACTERS:,}" in error.rule
