from __future__ import annotations

import pytest

from casewright.errors import PlanError
from casewright.planner import MAX_STEPS, Plan, Step, parse_plan, validate_plan
from tests.planner.helpers import SHOP, errors_of
from tests.planner.toolbox import FORMS, TOOLBOX, assert_accepted, only_error


def test_validation_refuses_a_tool_outside_the_toolbox() -> None:
    error = only_error("buy()")
    assert "no tool buy" in error.rule
    assert all(name in error.mend for name in TOOLBOX.names)


def test_validation_refuses_a_tool_removed_from_the_toolbox() -> None:
    text = "s1 = desk(query=question)"
    assert errors_of(text) == []
    assert "no tool desk" in errors_of(text, SHOP.without("desk"))[0].rule


def test_validation_refuses_a_missing_required_argument() -> None:
    error = only_error("text()")
    assert "needs the argument x" in error.rule
    assert "text(x: literal)" in error.mend


def test_validation_accepts_a_missing_optional_argument() -> None:
    assert_accepted("optional()")
    assert_accepted('optional(x="a")')


def test_validation_refuses_an_unknown_argument() -> None:
    error = only_error('text(x="a", y="b")')
    assert "no parameter y" in error.rule
    assert "text(x: literal)" in error.mend


def test_validation_refuses_an_argument_given_twice() -> None:
    step = parse_plan('s1 = text(x="a")').steps[0]
    twice = Step(step.tool, step.arguments * 2)
    with pytest.raises(PlanError, match="s1: x is given twice"):
        validate_plan(Plan((twice,)), TOOLBOX, question="q", context={})


@pytest.mark.parametrize("field", ["nothing", "none"])
def test_validation_refuses_a_missing_or_null_context_field(field: str) -> None:
    error = only_error(f"page(x=context.{field})")
    assert f"no {field}" in error.rule
    assert "page" in error.mend
    assert "none" not in error.mend


def test_plan_error_says_that_the_context_is_empty() -> None:
    (error,) = errors_of("s1 = page(x=context.page)", TOOLBOX)
    assert "empty" in error.mend


@pytest.mark.parametrize(
    ("tool", "admitted"),
    [
        ("words", {"span"}),
        ("text", {"literal", "span"}),
        ("asked", {"question"}),
        ("page", {"context"}),
        ("looked_up", {"step"}),
        ("count", {"number"}),
        ("flag", {"boolean"}),
        ("unit", set()),
        ("unit_or_step", {"step"}),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_validation_accepts_only_the_declared_sources_of_a_parameter(
    tool: str, admitted: set[str], form: str
) -> None:
    call = f"{tool}(x={FORMS[form]})"
    if form in admitted:
        assert_accepted(call)
    else:
        assert only_error(call).rule.startswith("x")


def test_validation_refuses_an_identifier_written_as_a_literal() -> None:
    error = errors_of('s1 = fact(item_id="p1", query=question)')[0]
    assert (error.step, error.rule) == ("s1", 'item_id may not be the text "p1".')
    assert error.mend == "It takes context | step."


@pytest.mark.parametrize("tool", ["unit", "unit_or_step"])
def test_validation_accepts_only_the_declared_choices(tool: str) -> None:
    assert_accepted(f'{tool}(x="kelvin")')
    error = only_error(f'{tool}(x="Kelvin")')
    assert "celsius" in error.mend
    assert "kelvin" in error.mend


@pytest.mark.parametrize(
    ("text", "valid"),
    [("RED wool", True), ("socks", True), ("socks?", False), ("ool", False), ("red socks", False)],
)
def test_validation_accepts_only_spans_of_adjacent_whole_words(text: str, valid: bool) -> None:
    if valid:
        assert_accepted(f'words(x="{text}")')
    else:
        error = only_error(f'words(x="{text}")')
        assert "adjacent words" in error.rule
        assert "question" in error.mend


def test_validation_refuses_more_than_max_steps_steps() -> None:
    plan = "\n".join(f"s{n} = give()" for n in range(1, MAX_STEPS + 1))
    assert errors_of(plan, TOOLBOX) == []
    (error,) = errors_of(f"{plan}\ns{MAX_STEPS + 1} = give()", TOOLBOX)
    assert error.step is None
    assert str(MAX_STEPS) in error.rule
    assert "Leave out" in error.mend
    assert errors_of("s1 = give()\ns2 = give()", TOOLBOX, max_steps=1) != []


def test_violations_are_reported_in_the_order_of_the_steps() -> None:
    errors = errors_of("s1 = buy()\ns2 = text()\ns3 = count(x=question, y=1)", TOOLBOX)
    assert [error.step for error in errors] == ["s1", "s2", "s3", "s3"]


def test_validation_raises_the_first_violation() -> None:
    plan = parse_plan("s1 = give()\ns2 = buy()\ns3 = sell()")
    with pytest.raises(PlanError, match="s2: There is no tool buy"):
        validate_plan(plan, TOOLBOX, question="q", context={})
