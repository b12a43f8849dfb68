"""The choices for editing a plan admit exactly the plans that the static checks admit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.planner import Plan, PlanRequest, parse_plan
from casewright.planner.choices import editable_steps, plan_choices
from tests.planner.grammar_strategies import REQUESTS, valid_plans

SETTINGS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)
REFERENCE = re.compile(r"s(\d+)(?:\[\d+\])?\.(\w+)")


def scalars(choices: dict[str, Any], words: Any, results: Sequence[Sequence[str]]) -> list[Any]:
    """Return strategies of the values, in the plan language, that the choices admit."""
    options = [st.sampled_from(choices["values"])] if choices["values"] else []
    references = [f"s{n}.{field}" for n, fields in enumerate(results, 1) for field in fields]
    if choices["step"] and references:
        options.append(st.sampled_from(references))
    if choices["text"]:
        options.append(st.text('ab"\\\n é', max_size=9).map(json.dumps))
    if choices["number"]:
        options.append(st.integers(-(10**9), 10**9).map(str))
    if choices["span"] and words:
        options.append(
            st.tuples(*[st.integers(0, len(words) - 1)] * 2).map(lambda p: span(words, p))
        )
    return options


def span(words: Sequence[Sequence[str]], positions: tuple[int, int]) -> str:
    first, last = sorted(positions)
    return json.dumps("".join(map("".join, words[first:last])) + words[last][0])


@st.composite
def chosen_plans(draw: st.DrawFn, request: PlanRequest) -> str:
    """Draw a plan's text as an editor composes it."""
    choices = json.loads(json.dumps(plan_choices(request)))
    lines: list[str] = []
    results: list[Sequence[str]] = []
    for number in range(draw(st.integers(1, choices["most_steps"]))):
        tool = draw(st.sampled_from(choices["tools"]))
        arguments = []
        for parameter in tool["parameters"]:
            values = scalars(parameter["alone"], choices["words"], results)
            if items := parameter["items"] and scalars(
                parameter["items"], choices["words"], results
            ):
                lists = st.lists(st.one_of(items), min_size=1, max_size=3)
                values.append(lists.map(lambda members: f"[{', '.join(members)}]"))
            if values and (parameter["required"] or draw(st.booleans())):
                arguments.append(f"{parameter['name']}={draw(st.one_of(values))}")
            elif parameter["required"]:
                # No value is possible: the user chooses another tool.
                tool, arguments = {"name": "no_evidence", "results": []}, []
                break
        lines.append(f"s{number + 1} = {tool['name']}({', '.join(arguments)})")
        results.append(tool["results"])
    return "\n".join(lines)


def test_plan_made_of_plan_choices_is_valid() -> None:
    call_count = 0

    @SETTINGS
    @given(REQUESTS, st.data())
    def run(request: PlanRequest, data: st.DataObject) -> None:
        nonlocal call_count
        plan = parse_plan(data.draw(chosen_plans(request)))
        request.validate(plan)
        call_count += sum(bool(step.arguments) for step in plan.steps)

    run()
    assert call_count >= 30


def is_admitted(value: Any, choices: dict[str, Any], earlier: Plan, request: PlanRequest) -> bool:
    if isinstance(value, list):
        items = choices["items"]
        return bool(items) and all(
            is_admitted(item, {"alone": items, "items": None}, earlier, request) for item in value
        )
    alone = choices["alone"]
    if reference := REFERENCE.fullmatch(value):
        tool = earlier.steps[int(reference[1]) - 1].tool
        return bool(alone["step"]) and reference[2] in request.toolbox[tool].results
    is_text, is_number = value.startswith('"'), value[0] in "-0123456789"
    return value in alone["values"] or bool(
        (is_text and alone["text"]) or (is_number and alone["number"])
    )


@SETTINGS
@given(REQUESTS, st.data())
def test_plan_choices_admit_every_valid_plan(request: PlanRequest, data: st.DataObject) -> None:
    plan = data.draw(valid_plans(request))
    tools = {tool["name"]: tool for tool in plan_choices(request)["tools"]}
    steps = editable_steps("no plan", str(plan))
    assert [step["tool"] for step in steps] == list(plan.tools)
    for step in steps:
        parameters = {spec["name"]: spec for spec in tools[step["tool"]]["parameters"]}
        for name, value in step["arguments"].items():
            assert is_admitted(value, parameters[name], plan, request), (name, value)
