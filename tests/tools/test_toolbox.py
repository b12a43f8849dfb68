from __future__ import annotations

import pytest

from casewright.errors import ToolError
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolExample, ToolSpec

A, B, C = (ToolSpec(name, f"Does {name}.") for name in "abc")


def test_tools_keep_their_order_and_no_evidence_comes_last() -> None:
    box = Toolbox([C, A, B])
    assert box.names == ("c", "a", "b", "no_evidence")
    assert [tool.name for tool in box] == list(box.names)
    assert len(box) == 4


def test_even_an_empty_toolbox_holds_no_evidence() -> None:
    assert Toolbox([]).names == ("no_evidence",)
    assert Toolbox([])["no_evidence"] is NO_EVIDENCE


def test_no_evidence_stays_where_it_was_put() -> None:
    assert Toolbox([A, NO_EVIDENCE, B]).names == ("a", "no_evidence", "b")


def test_without_leaves_out_and_keeps_the_given_toolbox() -> None:
    box = Toolbox([A, B, C])
    assert box.without("b").names == ("a", "c", "no_evidence")
    assert box.without("a", "c").names == ("b", "no_evidence")
    assert "b" in box


def test_no_evidence_cannot_be_taken_out() -> None:
    assert Toolbox([A]).without("no_evidence", "a").names == ("no_evidence",)


def test_without_an_unknown_tool_names_it_and_those_that_there_are() -> None:
    with pytest.raises(ToolError, match=r"nothing.*\['a', 'no_evidence'\]"):
        Toolbox([A]).without("nothing")


def test_with_adds_before_no_evidence() -> None:
    box = Toolbox([A])
    assert box.with_(C, B).names == ("a", "c", "b", "no_evidence")
    assert box.names == ("a", "no_evidence")


def test_with_adds_at_the_end_where_no_evidence_stands_elsewhere() -> None:
    assert Toolbox([NO_EVIDENCE, A]).with_(B).names == ("no_evidence", "a", "b")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolError, match=r"\['a'\]"):
        Toolbox([A, B, ToolSpec("a", "Another one.")])
    with pytest.raises(ToolError, match=r"\['a'\]"):
        Toolbox([A]).with_(A)


def test_tools_are_found_by_name() -> None:
    box = Toolbox([A, B])
    assert box["b"] is B
    assert "c" not in box
    with pytest.raises(KeyError):
        box["c"]


def test_equal_tools_have_one_fingerprint() -> None:
    again = Toolbox([ToolSpec("a", "Does a."), ToolSpec("b", "Does b.")])
    assert Toolbox([A, B]).fingerprint() == again.fingerprint()


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
def test_a_fingerprint_changes_with_all_that_a_planner_sees(changed: ToolSpec) -> None:
    assert Toolbox([A]).fingerprint() != Toolbox([changed]).fingerprint()


def test_a_fingerprint_tells_parameters_of_different_kinds_apart() -> None:
    kinds = [
        ToolSpec("a", "", (Parameter("x", kind=kind, sources=frozenset({Source.NUMBER})),))
        for kind in ("number", "integer")
    ]
    assert Toolbox(kinds[:1]).fingerprint() != Toolbox(kinds[1:]).fingerprint()


def test_a_fingerprint_depends_on_the_order() -> None:
    assert Toolbox([A, B]).fingerprint() != Toolbox([B, A]).fingerprint()
