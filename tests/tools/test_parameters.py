from __future__ import annotations

import pytest

from casewright.errors import ToolError
from casewright.tools import NO_EVIDENCE, Parameter, Source, ToolSpec

IDENTIFIER = {Source.CONTEXT, Source.STEP}
OPEN = {
    Source.SPAN,
    Source.LITERAL,
    Source.NUMBER,
    Source.QUESTION,
    Source.CONTEXT,
    Source.STEP,
}


@pytest.mark.parametrize("name", ["product_id", "_id", "order_id"])
@pytest.mark.parametrize("kind", ["any", "string", "integer"])
def test_an_undeclared_identifier_admits_context_and_steps_only(name: str, kind: str) -> None:
    assert Parameter(name, kind=kind).sources == IDENTIFIER


@pytest.mark.parametrize("name", ["query", "id", "product_ids", "identity"])
def test_any_other_undeclared_parameter_admits_everything_but_booleans(name: str) -> None:
    assert Parameter(name).sources == OPEN


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", OPEN - {Source.NUMBER}),
        ("number", {Source.NUMBER, *IDENTIFIER}),
        ("integer", {Source.NUMBER, *IDENTIFIER}),
        ("boolean", {Source.BOOLEAN, *IDENTIFIER}),
    ],
)
def test_a_typed_undeclared_parameter_admits_what_can_fit(kind: str, expected: set[Source]) -> None:
    assert Parameter("given", kind=kind).sources == expected


def test_declared_sources_are_kept_as_they_are() -> None:
    assert Parameter("product_id", sources=frozenset({Source.SPAN})).sources == {Source.SPAN}


def test_an_enumeration_admits_nothing_but_its_choices() -> None:
    assert Parameter("unit", choices=("c", "f")).sources == frozenset()


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "é", "a\n"])
def test_names_are_identifiers(name: str) -> None:
    with pytest.raises(ToolError, match="named"):
        Parameter(name)
    with pytest.raises(ToolError, match="named"):
        ToolSpec(name, "")
    with pytest.raises(ToolError, match="fields"):
        ToolSpec("tool", "", results=(name,))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ToolError, match="tuple"):
        Parameter("a", kind="tuple")


def test_a_tool_has_no_two_parameters_of_one_name() -> None:
    with pytest.raises(ToolError, match="two parameters"):
        ToolSpec("tool", "", (Parameter("a"), Parameter("a")))


@pytest.mark.parametrize(
    ("kind", "fitting", "other"),
    [
        ("string", ["", "a"], [1, True, None, ["a"]]),
        ("number", [1, 1.5], ["1", True, None]),
        ("integer", [0, -3], [1.5, False, "1"]),
        ("boolean", [True, False], [0, "true"]),
        ("array", [[], ["a"]], ["a", 1, {"a": 1}]),
        ("any", ["a", 1, None, []], []),
    ],
)
def test_a_value_fits_by_its_json_type(
    kind: str, fitting: list[object], other: list[object]
) -> None:
    parameter = Parameter("given", kind=kind)
    assert [value for value in fitting + other if parameter.fits(value)] == fitting


def test_a_signature_shows_parameters_with_sources_choices_and_results() -> None:
    tool = ToolSpec(
        "weather",
        "",
        (
            Parameter("city", sources=frozenset({Source.STEP, Source.SPAN})),
            Parameter("unit", choices=("c", "f"), required=False),
        ),
        ("evidence", "station"),
    )
    assert tool.signature() == 'weather(city: span | step, unit?: "c" | "f") -> evidence, station'


def test_no_evidence_takes_nothing_and_returns_nothing() -> None:
    assert NO_EVIDENCE.name == "no_evidence"
    assert NO_EVIDENCE.parameters == ()
    assert NO_EVIDENCE.results == ()
