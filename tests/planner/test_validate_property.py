"""A plan that passes the static checks uses only tools of its toolbox and allowed sources."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import PlanError
from casewright.planner import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Step,
    StepRef,
    is_span,
    parse_plan,
    validate_plan,
    violations,
)
from casewright.tools import Parameter, Source, Toolbox, ToolSpec
from tests.planner.strategies import PLANS

QUESTION = "which red socks"
FIELDS = ("page_id", "gone", "title")
KINDS = ("any", "string", "number", "array")

SOURCES = st.frozensets(st.sampled_from(list(Source)), max_size=4)
PARAMETERS = st.builds(
    Parameter,
    st.just("x"),
    kind=st.sampled_from(KINDS),
    sources=SOURCES,
    choices=st.sampled_from([(), ("red", "small")]),
    required=st.booleans(),
)
SCALARS = st.one_of(
    st.builds(Literal, st.sampled_from(["red socks", "red", "small", "other", 1, 1.5, True])),
    st.just(QuestionRef()),
    st.builds(ContextRef, st.sampled_from(FIELDS)),
    st.builds(StepRef, st.integers(1, 3), st.sampled_from(FIELDS), st.integers(0, 1)),
)
VALUES = SCALARS | st.builds(ListValue, st.lists(SCALARS, max_size=2).map(tuple))
ARGUMENTS = st.sampled_from([(), ("x",), ("x",), ("x",), ("y",)])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Toolbox, Plan]:
    tools = [
        ToolSpec(name, "", (draw(PARAMETERS),), draw(st.sampled_from([(), ("title",), FIELDS])))
        for name in "abc"
    ]
    steps = [
        Step(
            draw(st.sampled_from(["a", "b", "c", "a", "b", "no_evidence", "evil"])),
            tuple((name, draw(VALUES)) for name in draw(ARGUMENTS)),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Toolbox(tools), Plan(tuple(steps))


def is_admissible(parameter: Parameter, value: Any) -> bool:
    """Return whether a single value comes from a source that its parameter declares."""
    match value:
        case Literal(bool()):
            return Source.BOOLEAN in parameter.sources
        case Literal(str(text)):
            span = Source.SPAN in parameter.sources and is_span(text, QUESTION)
            return text in parameter.choices or Source.LITERAL in parameter.sources or span
        case Literal():
            return Source.NUMBER in parameter.sources
        case QuestionRef():
            return Source.QUESTION in parameter.sources
        case ContextRef(field):
            return Source.CONTEXT in parameter.sources and field == "page_id"
        case _:
            return isinstance(value, StepRef) and Source.STEP in parameter.sources


def check_plan(toolbox: Toolbox, plan: Plan) -> None:
    for number, step in enumerate(plan.steps, 1):
        assert step.tool in toolbox
        tool = toolbox[step.tool]
        counts = Counter(name for name, _ in step.arguments)
        assert set(counts.values()) <= {1}
        assert set(counts) <= {p.name for p in tool.parameters}
        assert {p.name for p in tool.parameters if p.required} <= set(counts)
        for name, value in step.arguments:
            parameter = tool.parameter(name)
            assert parameter is not None
            members = value.items if isinstance(value, ListValue) else (value,)
            assert all(is_admissible(parameter, member) for member in members)
        for reference in step.references():
            assert 1 <= reference.step < number
            assert reference.field in toolbox[plan.steps[reference.step - 1].tool].results


def test_an_accepted_plan_holds_known_tools_and_admitted_sources_only() -> None:
    outcomes: Counter[bool] = Counter()

    @settings(max_examples=500, deadline=None)
    @given(cases())
    def run(case: tuple[Toolbox, Plan]) -> None:
        toolbox, plan = case
        context = {"page_id": "p", "gone": None}
        try:
            validate_plan(plan, toolbox, question=QUESTION, context=context)
        except PlanError:
            outcomes[False] += 1
            return
        outcomes[True] += 1
        check_plan(toolbox, plan)
        assert parse_plan(str(plan)) == plan

    run()
    # The property says little if few plans are accepted or few refused.
    assert min(outcomes[True], outcomes[False]) >= 20


@settings(deadline=None)
@given(PLANS)
def test_any_plan_is_accepted_or_refused_with_a_plan_error(plan: Plan) -> None:
    toolbox = Toolbox([ToolSpec(plan.steps[0].tool, "", (Parameter("x"),))])
    context = {"page_id": "p"}
    errors = list(violations(plan, toolbox, question=QUESTION, context=context))
    assert all(error.rule and error.mend for error in errors)
    assert bool(errors) or set(plan.tools) <= set(toolbox.names)
