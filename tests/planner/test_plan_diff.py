"""Two plans are compared by their steps, regardless of the order and numbers of steps."""

from __future__ import annotations

import pytest

from casewright.planner import diff_plans, parse_plan

WARM = 's1 = find(query="mill")\ns2 = read(id=s1.id)'


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        (WARM, WARM, ["same", "same"]),
        # Order and numbers of the steps differ; the calls are equal.
        (
            's1 = find(query="a")\ns2 = find(query="b")\ns3 = read(id=s1.id)',
            's1 = find(query="b")\ns2 = find(query="a")\ns3 = read(id=s2.id)',
            ["same", "same", "same"],
        ),
        # A step that refers to a changed step stays the same.
        (WARM, WARM.replace("mill", "lathe"), ["changed", "same"]),
        (
            WARM,
            's1 = find(query="mill")\ns2 = stop(id=s1.id)',
            ["same", "only_first", "only_second"],
        ),
        (
            's1 = find(query="a")\ns2 = find(query="b")\ns3 = read(id=s1.id)',
            's1 = find(query="a")\ns2 = find(query="b")\ns3 = read(id=s2.id)',
            ["same", "same", "changed"],
        ),
        # The order of arguments does not matter; a number differs from its text.
        ("s1 = f(a=1, b=2)", "s1 = f(b=2, a=1)", ["same"]),
        ("s1 = f(a=1)", 's1 = f(a="1")', ["changed"]),
        # A step that refers to a step of only one plan is changed.
        (
            's1 = f(a="x")\ns2 = g(b=s1.c)',
            's1 = h(a="x")\ns2 = g(b=s1.c)',
            ["only_first", "changed", "only_second"],
        ),
    ],
)
def test_diff_plans_matches_steps_by_their_calls_regardless_of_order(
    first: str, second: str, changes: list[str]
) -> None:
    steps = diff_plans(parse_plan(first), parse_plan(second))
    assert [step.change for step in steps] == changes
    assert [s.first for s in steps if s.first] == first.split("\n")
    assert {s.second for s in steps if s.second} == {*second.split("\n")}
