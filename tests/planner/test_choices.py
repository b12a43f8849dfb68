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


def scalars(admitted: dict[str, Any], words: Any, results: Sequence[Sequence[str]]) -> list[Any]:
    """Strategies of the values, in the plan language, that these choices admit."""
    options = [st.sampled_from(admitted["values"])] if admitted["values"] else []
    references = [f"s{n}.{field}" for n, fields in enumerate(results, 1) for field in fields]
    if admitted["step"] and references:
        options.append(st.sampled_from(references))
    if admitted["text"]:
        options.append(st.text('ab"\\\n é', max_size=9).map(json.dumps))
    if admitted["number"]:
        options.append(st.integers(-(10**9), 10**9).map(str))
    if admitted["span"] and words:
        options.append(
            st.tuples(*[st.integers(0, len(words) - 1)] * 2).map(lambda p: span(words, p))
        )
    return options


def span(words: Sequence[Sequence[str]], ends: tuple[int, int]) -> str:
    first, last = sorted(ends)
    return json.dumps("".join(map("".join, words[first:last])) + words[last][0])


@st.composite
def chosen_plans(draw: st.DrawFn, request: PlanRequest) -> str:
    """A plan's text as an editor puts it together."""
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
                listed = st.lists(st.one_of(items), min_size=1, max_size=3)
                values.append(listed.map(lambda each: f"[{', '.join(each)}]"))
            if values and (parameter["required"] or draw(st.booleans())):
                arguments.append(f"{parameter['name']}={draw(st.one_of(values))}")
            elif parameter["required"]:
                # An editor asks for it in vain: another tool is to be chosen.
                tool, arguments = {"name": "no_evidence", "results": []}, []
                break
        lines.append(f"s{number + 1} = {tool['name']}({', '.join(arguments)})")
        results.append(tool["results"])
    return "\n".join(lines)


def test_plan_made_of_plan_choices_is_valid() -> None:
    called = 0

    @SETTINGS
    @given(REQUESTS, st.data())
    def run(request: PlanRequest, data: st.DataObject) -> None:
        nonlocal called
        plan = parse_plan(data.draw(chosen_plans(request)))
        request.validate(plan)
        called += sum(bool(step.arguments) for step in plan.steps)

    run()
    assert called >= 30


def admitted(value: Any, choices: dict[str, Any], earlier: Plan, request: PlanRequest) -> bool:
    if isinstance(value, list):
        items = choices["items"]
        return bool(items) and all(
            admitted(each, {"alone": items, "items": None}, earlier, request) for each in value
        )
    alone = choices["alone"]
    if reference := REFERENCE.fullmatch(value):
        tool = earlier.steps[int(reference[1]) - 1].tool
        return bool(alone["step"]) and reference[2] in request.toolbox[tool].results
    text, number = value.startswith('"'), value[0] in "-0123456789"
    return value in alone["values"] or bool(
        (text and alone["text"]) or (number and alone["number"])
    )


@SETTINGS
@given(REQUESTS, st.data())
def test_plan_choices_admit_every_valid_plan(request: PlanRequest, data: st.DataObject) -> None:
    plan = data.draw(valid_plans(request))
    tools = {tool["name"]: tool for tool in plan_choices(request)["tools"]}
    parts = editable_steps("no plan", str(plan))
    assert [part["tool"] for part in parts] == list(plan.tools)
    for part in parts:
        parameters = {each["name"]: each for each in tools[part["tool"]]["parameters"]}
        for name, value in part["arguments"].items():
            assert admitted(value, parameters[name], plan, request), (name, value)
