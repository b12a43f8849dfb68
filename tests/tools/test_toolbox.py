from __future__ import annotations

import pytest

from casewright.errors import ToolError
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolExample, ToolSpec

A, B, C = (ToolSpec(name, f"Does {name}.") for name in "abc")


def test_toolbox_keeps_the_order_of_tools_and_appends_no_evidence() -> None:
    toolbox = Toolbox([C, A, B])
    assert toolbox.names == ("c", "a", "b", "no_evidence")
    assert [tool.name for tool in toolbox] == list(toolbox.names)
    assert len(toolbox) == 4


def test_empty_toolbox_contains_no_evidence() -> None:
    assert Toolbox([]).names == ("no_evidence",)
    assert Toolbox([])["no_evidence"] is NO_EVIDENCE


def test_toolbox_keeps_the_given_position_of_no_evidence() -> None:
    assert Toolbox([A, NO_EVIDENCE, B]).names == ("a", "no_evidence", "b")


def test_toolbox_without_removes_tools_and_leaves_the_original_unchanged() -> None:
    toolbox = Toolbox([A, B, C])
    assert toolbox.without("b").names == ("a", "c", "no_evidence")
    assert toolbox.without("a", "c").names == ("b", "no_evidence")
    assert "b" in toolbox


def test_toolbox_without_never_removes_no_evidence() -> None:
    assert Toolbox([A]).without("no_evidence", "a").names == ("no_evidence",)


def test_toolbox_without_an_unknown_tool_raises_an_error_naming_all_tools() -> None:
    with pytest.raises(ToolError, match=r"nothing.*\['a', 'no_evidence'\]"):
        Toolbox([A]).without("nothing")


def test_toolbox_with_adds_tools_before_no_evidence() -> None:
    toolbox = Toolbox([A])
    assert toolbox.with_(C, B).names == ("a", "c", "b", "no_evidence")
    assert toolbox.names == ("a", "no_evidence")


def test_toolbox_with_appends_tools_if_no_evidence_is_not_last() -> None:
    assert Toolbox([NO_EVIDENCE, A]).with_(B).names == ("no_evidence", "a", "b")


def test_toolbox_refuses_two_tools_of_one_name() -> None:
    with pytest.raises(ToolError, match=r"\['a'\]"):
        Toolbox([A, B, ToolSpec("a", "Another one.")])
    with pytest.raises(ToolError, match=r"\['a'\]"):
        Toolbox([A]).with_(A)


def test_toolbox_finds_tools_by_name() -> None:
    toolbox = Toolbox([A, B])
    assert toolbox["b"] is B
    assert "c" not in toolbox
    with pytest.raises(KeyError):
        toolbox["c"]


def test_toolboxes_of_equal_tools_have_the_same_fingerprint() -> None:
    equal = Toolbox([ToolSpec("a", "Does a."), ToolSpec("b", "Does b.")])
    assert Toolbox([A, B]).fingerprint() == equal.fingerprint()


@pytest.mark.parametrize(
    "changed",
    [
        ToolSpec("b", "Does a."),
        ToolSpec("a", "Does something else."),
        ToolSpec("a", "Does a.", (Parameter("x"),)),
        ToolSpec("a", "Does a.", results=("title",)),
        ToolSpec("a", "Does a.", example=ToolExample("who?", "s1 = a()")),
    ],
    ids=["name", "description", "parameter", "results", "example"],
)
def test_toolbox_fingerprint_changes_with_everything_that_a_planner_sees(changed: ToolSpec) -> None:
    assert Toolbox([A]).fingerprint() != Toolbox([changed]).fingerprint()


def test_toolbox_fingerprint_depends_on_the_kind_of_a_parameter() -> None:
    kinds = [
        ToolSpec("a", "", (Parameter("x", kind=kind, sources=frozenset({Source.NUMBER})),))
        for kind in ("number", "integer")
    ]
    assert Toolbox(kinds[:1]).fingerprint() != Toolbox(kinds[1:]).fingerprint()


def test_toolbox_fingerprint_depends_on_the_order_of_tools() -> None:
    assert Toolbox([A, B]).fingerprint() != Toolbox([B, A]).fingerprint()
