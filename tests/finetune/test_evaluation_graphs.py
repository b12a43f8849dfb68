"""Equality of plans as graphs, checked against every possible mapping of steps."""

from __future__ import annotations

import time
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.finetune.evaluation import same_graph
from casewright.planner import ListValue, Literal, Plan, Step, StepRef, parse_plan
from casewright.planner.plan import Value
from tests.finetune.evaluating import gold_query
from tests.support.examples import at_most


def equal(gold: str, other: str, *, arguments: bool = False, **fields: object) -> bool:
    return same_graph(gold_query(0, gold, "a", **fields), parse_plan(other), arguments=arguments)


TWO = 's1 = a(q="x")\ns2 = b(q="y")\ns3 = c(one=s1.id, other=s2.id)'


def test_same_graph_ignores_the_order_of_independent_steps() -> None:
    swapped = 's1 = b(q="y")\ns2 = a(q="x")\ns3 = c(one=s2.id, other=s1.id)'
    assert equal(TWO, swapped)
    assert equal(TWO, swapped, arguments=True)


@pytest.mark.parametrize(
    ("other", "by_tools"),
    [
        (TWO.replace('"x"', '"z"'), True),
        (TWO.replace("s2.id", "s2.text"), True),
        (TWO.replace("s2.id", "s2[1].id"), True),
        (TWO.replace("one=s1.id, other=s2.id", "one=s2.id, other=s1.id"), True),
        (TWO.replace("s2.id", "s1.id"), False),
        (TWO.replace("s2.id", '"y"'), False),
        (TWO.replace(" b(", " a("), False),
        (TWO + "\ns4 = a()", False),
    ],
)
def test_same_graph_distinguishes_other_references_and_arguments(
    other: str, by_tools: bool
) -> None:
    assert equal(TWO, other) is by_tools
    assert not equal(TWO, other, arguments=True)


def test_same_graph_compares_references_in_a_list_by_position() -> None:
    gold = "s1 = a()\ns2 = a()\ns3 = b(of=[s1.id, s2.text])"
    assert equal(gold, "s1 = a()\ns2 = a()\ns3 = b(of=[s2.id, s1.text])", arguments=True)
    assert not equal(gold, "s1 = a()\ns2 = a()\ns3 = b(of=[s1.text, s2.id])", arguments=True)


def test_same_graph_uses_must_words_and_accepted_tools() -> None:
    must = {"s1.q": ["red"]}
    assert equal('s1 = a(q="red")', 's1 = a(q="a red one")', arguments=True, must=must)
    assert not equal('s1 = a(q="red")', 's1 = a(q="blue")', arguments=True, must=must)
    assert equal('s1 = a(q="red")', "s1 = b()\ns2 = c()", arguments=True, accept=[["b", "c"]])


@st.composite
def plans(draw: st.DrawFn, max_steps: int = 5) -> Plan:
    steps = []
    for number in range(1, draw(st.integers(1, max_steps)) + 1):
        values: list[Value] = [Literal(draw(st.sampled_from("xy")))]
        for _ in range(draw(st.integers(0, 2)) if number > 1 else 0):
            values.append(
                StepRef(draw(st.integers(1, number - 1)), draw(st.sampled_from(("id", "text"))))
            )
        if draw(st.booleans()) and len(values) > 1:
            values = [values[0], ListValue(tuple(values[1:]))]  # type: ignore[arg-type]
        arguments = tuple((f"p{index}", value) for index, value in enumerate(values))
        steps.append(Step(draw(st.sampled_from("ab")), arguments))
    return Plan(tuple(steps))


def renumber_references(value: Value, positions: dict[int, int]) -> Value:
    if isinstance(value, ListValue):
        return ListValue(tuple(renumber_references(item, positions) for item in value.items))  # type: ignore[misc]
    if isinstance(value, StepRef):
        return StepRef(positions[value.step], value.field, value.index)
    return value


def reorder_steps(plan: Plan, order: tuple[int, ...]) -> Plan:
    """Return the plan with step ``order[i]`` at position i and adjusted references."""
    positions = {old: new for new, old in enumerate(order, 1)}
    return Plan(
        tuple(
            Step(
                plan.steps[old - 1].tool,
                tuple(
                    (name, renumber_references(value, positions))
                    for name, value in plan.steps[old - 1].arguments
                ),
            )
            for old in order
        )
    )


@settings(max_examples=at_most(100), deadline=None)
@given(plans(8), st.randoms())
def test_reordered_plan_with_adjusted_references_is_the_same_graph(plan: Plan, rng: Random) -> None:
    order = list(range(1, len(plan.steps) + 1))
    rng.shuffle(order)
    other = reorder_steps(plan, tuple(order))
    query = gold_query(0, str(plan), "a")
    assert same_graph(query, other)
    assert same_graph(query, other, arguments=True)


@settings(max_examples=at_most(100), deadline=None)
@given(plans(), st.data())
def test_plan_with_one_changed_reference_is_another_graph(plan: Plan, data: st.DataObject) -> None:
    referring = [n for n, step in enumerate(plan.steps) if any(step.references())]
    if not referring:
        return
    index = data.draw(st.sampled_from(referring))
    lines = str(plan).split("\n")
    field = next(plan.steps[index].references()).field
    lines[index] = lines[index].replace(f".{field}", ".price", 1)
    assert not same_graph(
        gold_query(0, str(plan), "a"), parse_plan("\n".join(lines)), arguments=True
    )


@settings(max_examples=at_most(150), deadline=None)
@given(plans(4), plans(4))
def test_same_graph_agrees_with_trying_every_mapping(plan: Plan, other: Plan) -> None:
    orders = permutations(range(1, len(plan.steps) + 1))
    reorderings = [reorder_steps(plan, order) for order in orders]
    query = gold_query(0, str(plan), "a")
    assert same_graph(query, other, arguments=True) == (other in reorderings)
    assert same_graph(query, other) == any(
        tools_and_references(other) == tools_and_references(candidate) for candidate in reorderings
    )


def tools_and_references(plan: Plan) -> list[tuple[str, frozenset[int]]]:
    return [(step.tool, frozenset(ref.step for ref in step.references())) for step in plan.steps]


def test_same_graph_compares_16_steps_of_one_tool_within_five_seconds() -> None:
    """A search that only backtracks would try factorially many mappings."""
    gold = "\n".join(
        f"s{n} = a(of=s{n - 1}.id)" if n % 2 == 0 else f"s{n} = a()" for n in range(1, 17)
    )
    chain = gold.replace("s3 = a()", "s3 = a(of=s2.id)").replace("s16 = a(of=s15.id)", "s16 = a()")
    started = time.perf_counter()
    assert not equal(gold, chain)
    assert equal(gold, gold.replace("a(of", "a( of"))
    assert time.perf_counter() - started < 5
