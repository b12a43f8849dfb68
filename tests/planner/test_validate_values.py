"""The static checks of references, types and lists."""

from __future__ import annotations

import pytest

from tests.planner.helpers import errors_of
from tests.planner.toolbox import TOOLBOX, assert_accepted, only_error


@pytest.mark.parametrize("reference", ["s2.item_id", "s3.item_id", "s9[1].item_id"])
def test_validation_refuses_a_reference_to_no_earlier_step(reference: str) -> None:
    text = f"s1 = give()\ns2 = looked_up(x={reference})\ns3 = give()"
    (error,) = errors_of(text, TOOLBOX)
    assert error.step == "s2"
    assert f"{reference} does not refer to an earlier step" in error.rule
    assert "above" in error.mend


def test_validation_refuses_a_reference_to_an_undeclared_result_field() -> None:
    error = only_error("looked_up(x=s1.price)")
    assert "give have no price" in error.rule
    assert "item_id, title" in error.mend


def test_validation_refuses_a_reference_to_a_tool_without_results() -> None:
    errors = errors_of("s1 = no_evidence()\ns2 = looked_up(x=s1.item_id)", TOOLBOX)
    assert "nothing" in errors[0].mend


def test_validation_accepts_any_index_of_a_reference() -> None:
    assert_accepted("looked_up(x=s1[7].title)")


KINDS = {
    "string": {"question", '"a"', "context.page"},
    "number": {"1", "1.5", "context.n", "context.ratio"},
    "integer": {"1", "context.n"},
    "boolean": {"true", "context.on"},
    "any": {"question", '"a"', "1", "1.5", "true", "context.page", "context.n"}
    | {"context.ratio", "context.on", "context.tags", "[1, 2]"},
}


@pytest.mark.parametrize("value", sorted(KINDS["any"]))
@pytest.mark.parametrize("kind", KINDS)
def test_validation_accepts_only_values_that_fit_the_parameter_type(kind: str, value: str) -> None:
    if value in KINDS[kind]:
        assert_accepted(f"a_{kind}(x={value})")
    else:
        assert kind in only_error(f"a_{kind}(x={value})").rule


def test_validation_checks_each_list_member_against_the_parameter_sources() -> None:
    assert_accepted('many(x=["red", "wool socks", s1.title])')
    assert_accepted("many(x=[])")
    assert "may not be the number 3" in only_error('many(x=["red", 3])').rule
    assert "adjacent" in only_error('many(x=["red", "blue"])').rule
    assert "earlier step" in only_error("many(x=[s2.title])").rule
    assert "array" in only_error('many(x="red")').rule
