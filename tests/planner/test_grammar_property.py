"""The grammar of any request admits only valid plans, and all of them within its bounds."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.planner import PlanRequest, parse_plan
from tests.planner.grammar_strategies import REQUESTS, valid_plans
from tests.planner.grammar_walk import admits, admits_step, draw_text, grammar
from tests.support.examples import at_most

SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)


def test_grammar_writes_only_valid_plans_in_canonical_form() -> None:
    has_arguments: Counter[bool] = Counter()

    @SETTINGS
    @given(REQUESTS, st.integers(0, 2**32))
    def run(request: PlanRequest, seed: int) -> None:
        text = draw_text(grammar().plan_matcher(request), seed, go_on=0.8)
        plan = parse_plan(text)
        request.validate(plan)
        assert str(plan) == text
        has_arguments.update(bool(step.arguments) for step in plan.steps)

    run()
    # The property says little about plans that pass no argument.
    assert has_arguments[True] >= 30


def test_grammar_admits_every_valid_plan_within_its_bounds() -> None:
    has_arguments: Counter[bool] = Counter()

    @SETTINGS
    @given(REQUESTS, st.data())
    def run(request: PlanRequest, data: st.DataObject) -> None:
        plan = data.draw(valid_plans(request))
        assert admits(request, str(plan))
        has_arguments.update(bool(step.arguments) for step in plan.steps)

    run()
    assert has_arguments[True] >= 30


@settings(max_examples=at_most(60), deadline=None)
@given(REQUESTS, st.integers(0, 2**32), st.data())
def test_line_matcher_writes_and_admits_the_lines_of_valid_plans(
    request: PlanRequest, seed: int, data: st.DataObject
) -> None:
    lines: list[str] = []
    tools: list[str] = []
    while True:
        line = draw_text(grammar().line_matcher(request, tools), seed + len(lines))
        if line == "done":
            break
        lines.append(line)
        plan = parse_plan("\n".join(lines))
        tools = list(plan.tools)
        request.validate(plan)
        assert str(plan) == "\n".join(lines)
    assert 1 <= len(lines) <= request.max_steps
    plan = data.draw(valid_plans(request))
    for number, line in enumerate(str(plan).split("\n")):
        assert admits_step(request, plan.tools[:number], line)
