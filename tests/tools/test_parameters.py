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
def test_identifier_parameter_allows_only_context_and_step_by_default(name: str, kind: str) -> None:
    assert Parameter(name, kind=kind).sources == IDENTIFIER


@pytest.mark.parametrize("name", ["query", "id", "product_ids", "identity"])
def test_other_parameters_allow_every_source_except_boolean_by_default(name: str) -> None:
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
def test_typed_parameter_allows_only_fitting_sources_by_default(
    kind: str, expected: set[Source]
) -> None:
    assert Parameter("given", kind=kind).sources == expected


def test_declared_sources_of_a_parameter_replace_the_default() -> None:
    assert Parameter("product_id", sources=frozenset({Source.SPAN})).sources == {Source.SPAN}


def test_parameter_with_choices_allows_no_other_source() -> None:
    assert Parameter("unit", choices=("c", "f")).sources == frozenset()


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "é", "a\n"])
def test_names_of_parameters_tools_and_results_must_be_identifiers(name: str) -> None:
    with pytest.raises(ToolError, match="named"):
        Parameter(name)
    with pytest.raises(ToolError, match="named"):
        ToolSpec(name, "")
    with pytest.raises(ToolError, match="fields"):
        ToolSpec("tool", "", results=(name,))


def test_parameter_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ToolError, match="tuple"):
        Parameter("a", kind="tuple")


def test_tool_with_two_parameters_of_one_name_is_refused() -> None:
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
def test_parameter_fits_values_by_their_json_type(
    kind: str, fitting: list[object], other: list[object]
) -> None:
    parameter = Parameter("given", kind=kind)
    assert [value for value in fitting + other if parameter.fits(value)] == fitting


def test_tool_signature_shows_parameters_with_sources_choices_and_results() -> None:
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


def test_no_evidence_has_no_parameters_and_no_results() -> None:
    assert NO_EVIDENCE.name == "no_evidence"
    assert NO_EVIDENCE.parameters == ()
    assert NO_EVIDENCE.results == ()
