from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casewright.planner import Literal, Plan, is_span, parse_plan
from casewright.planner.plan import StepRef
from casewright.planner.sub_queries import joined_plan, sub_queries_of, without_no_evidence
from tests.planner.strategies import LITERALS, PLANS, SENTENCES, replace_spans, valid_plans

PAIR = 's1 = own(query="old tent")\ns2 = fact(item_id=s1.item_id, query=question)'
QUESTION = "How heavy is my old tent, and do you sell wool socks?"


@dataclass(frozen=True)
class Link:
    """A reference by the names of both tools; a drawn plan calls each tool at most once."""

    tool: str
    target: str
    field: str
    index: int


def links(plan: Plan) -> list[Link]:
    return [
        Link(step.tool, plan.steps[ref.step - 1].tool, ref.field, ref.index)
        for step in plan.steps
        for ref in step.references()
    ]


def unnumbered_steps(plan: Plan) -> Counter[str]:
    """Return the plan's steps without the numbers of the steps that they refer to."""
    texts = []
    for step in plan.steps:
        text = str(step)
        for ref in step.references():
            text = text.replace(str(ref), str(StepRef(0, ref.field, ref.index)), 1)
        texts.append(text)
    return Counter(texts)


@settings(deadline=None)
@given(st.data(), SENTENCES)
def test_plan_with_consecutive_sub_queries_is_joined_unchanged(
    data: st.DataObject, question: str
) -> None:
    plan = data.draw(valid_plans(question))
    sub_queries = sub_queries_of(plan, question)
    assume([tool for sub_query, _ in sub_queries for tool in sub_query.tools] == list(plan.tools))
    assert joined_plan(sub_queries) == plan


@settings(deadline=None)
@given(st.data(), SENTENCES)
def test_joined_plan_keeps_the_steps_and_references_of_the_original(
    data: st.DataObject, question: str
) -> None:
    plan = data.draw(valid_plans(question))
    joined = joined_plan(sub_queries_of(plan, question))
    assert Counter(joined.tools) == Counter(plan.tools)
    assert Counter(links(joined)) == Counter(links(plan))
    assert unnumbered_steps(joined) == unnumbered_steps(plan)
    # A step follows the steps that it refers to, and sub-queries are consecutive.
    assert all(
        1 <= ref.step < n for n, step in enumerate(joined.steps, 1) for ref in step.references()
    )
    assert joined_plan(sub_queries_of(joined, question)) == joined


@settings(deadline=None)
@given(st.data(), SENTENCES)
def test_every_step_belongs_to_exactly_one_sub_query(data: st.DataObject, question: str) -> None:
    plan = data.draw(valid_plans(question))
    sub_queries = sub_queries_of(plan, question)
    assert Counter(tool for sub_query, _ in sub_queries for tool in sub_query.tools) == Counter(
        plan.tools
    )
    needed = {plan.steps[ref.step - 1].tool for s in plan.steps for ref in s.references()}
    assert [sub_query.tools[-1] for sub_query, _ in sub_queries] == [
        t for t in plan.tools if t not in needed
    ]


@settings(deadline=None)
@given(st.data(), SENTENCES, SENTENCES)
def test_plans_that_differ_only_in_question_words_have_equal_sub_queries(
    data: st.DataObject, question: str, other: str
) -> None:
    plan = data.draw(valid_plans(question))
    replaced = replace_spans(plan, question, data.draw, other)
    # A text outside the first question may happen to be a span of the other.
    assume(not any(is_span(t, other) for t in texts_of(plan) if not is_span(t, question)))
    first, second = sub_queries_of(plan, question), sub_queries_of(replaced, other)
    assert [sub_query.template for sub_query, _ in first] == [
        sub_query.template for sub_query, _ in second
    ]
    assert [sub_query for sub_query, _ in first] == [sub_query for sub_query, _ in second]


def texts_of(plan: Plan) -> list[str]:
    return [
        value.value
        for step in plan.steps
        for _, value in step.arguments
        if isinstance(value, Literal) and isinstance(value.value, str)
    ]


@settings(deadline=None)
@given(LITERALS)
def test_literal_outside_the_question_stays_in_the_sub_query(literal: Literal) -> None:
    assume(not isinstance(literal.value, str) or not is_span(literal.value, QUESTION))
    assume(literal.value != "")
    plan = parse_plan(f"s1 = find(query={literal})")
    ((sub_query, texts),) = sub_queries_of(plan, QUESTION)
    assert sub_query.steps == plan.steps
    assert (texts, sub_query.slots) == ([], [])


def test_spans_of_the_question_become_slots_in_argument_order() -> None:
    plan = parse_plan('s1 = f(a="wool socks", b="red", c="old tent", d=["old tent"])')
    ((sub_query, texts),) = sub_queries_of(plan, QUESTION)
    assert texts == ["wool socks", "old tent"]
    assert sub_query.slots == [(0, "a"), (0, "c")]
    assert sub_query.template == 'f(a="", b="red", c="", d=["old tent"])'


def test_sub_query_reach_is_the_number_of_steps_back_to_its_earliest_reference() -> None:
    plan = parse_plan(f"{PAIR}\ns3 = fact(item_id=s1.item_id, query=question)")
    (first, _), (second, _) = sub_queries_of(plan, QUESTION)
    assert first.tools == ("own", "fact")
    assert second.tools == ("fact",)
    assert (first.reach, second.reach) == (0, 2)
    assert joined_plan([(first, ["kayak"]), (second, [])]) == parse_plan(
        str(plan).replace("old tent", "kayak")
    )


def test_sub_query_lists_the_context_fields_that_it_needs() -> None:
    plan = parse_plan("s1 = fact(item_id=context.product_id, query=question)")
    ((sub_query, _),) = sub_queries_of(plan, QUESTION)
    assert sub_query.context_fields() == {"product_id"}


def test_without_no_evidence_drops_it_and_renumbers_references() -> None:
    empty = "no_evidence()"
    fact_call = "fact(item_id={}.item_id, query=question)"
    mixed = f's1 = own(query="tent")\ns2 = {empty}\ns3 = {fact_call.format("s1")}\ns4 = {empty}'
    assert (
        str(without_no_evidence(parse_plan(mixed)))
        == f's1 = own(query="tent")\ns2 = {fact_call.format("s1")}'
    )
    moved = f's1 = {empty}\ns2 = own(query="tent")\ns3 = {fact_call.format("s2")}'
    assert (
        str(without_no_evidence(parse_plan(moved)))
        == f's1 = own(query="tent")\ns2 = {fact_call.format("s1")}'
    )


def test_without_no_evidence_keeps_a_plan_of_no_evidence_alone() -> None:
    plan = parse_plan("s1 = no_evidence()")
    assert without_no_evidence(plan) == plan


def test_joining_no_sub_queries_gives_an_empty_plan() -> None:
    assert joined_plan([]) == Plan(())


@settings(deadline=None)
@given(PLANS)
def test_plan_has_no_sub_queries_exactly_if_a_reference_is_invalid(plan: Plan) -> None:
    broken = any(
        not 1 <= ref.step < n for n, step in enumerate(plan.steps, 1) for ref in step.references()
    )
    assert (sub_queries_of(plan, QUESTION) == []) == broken


@pytest.mark.parametrize("step", [0, 1, 2])
def test_step_that_refers_to_no_earlier_step_gives_no_sub_queries(
    step: int,
) -> None:
    first, second = parse_plan("s1 = a(x=1)\ns2 = b()").steps
    looping_step = type(first)("a", (("x", StepRef(step, "y")),))
    assert sub_queries_of(Plan((looping_step, second)), QUESTION) == []
