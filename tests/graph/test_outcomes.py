"""Random plans with randomly failing steps end with the expected outcomes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import ToolError
from casewright.graph import Answer
from casewright.planner import Literal, Plan, Step, StepRef
from casewright.tools import CallContext, ToolSpec
from tests.graph.helpers import Awaiting, Blocking, graph_of, step_of, tool
from tests.support.examples import at_most

STEP_SECONDS = 0.4
BEHAVIOURS = ("done",) * 6 + ("empty", "raises", "refuses", "undeclared", "flaky", "hangs")
INPUTS = ("in0", "in1", "in2")


@dataclass(frozen=True)
class StepSpec:
    """The behaviour of a step of a random plan; with ``null``, ``maybe`` is null in its rows."""

    behaviour: str
    rows: int
    null: bool
    needs: Sequence[StepRef]


@st.composite
def step_specs(draw: st.DrawFn) -> list[StepSpec]:
    specs: list[StepSpec] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        reference = st.builds(
            StepRef,
            st.integers(1, max(number - 1, 1)),
            st.sampled_from(["value", "value", "maybe"]),
            st.sampled_from([0, 0, 0, 1, 2]),
        )
        needs = draw(st.lists(reference, max_size=3)) if number > 1 else []
        specs.append(
            StepSpec(
                draw(st.sampled_from(BEHAVIOURS)),
                draw(st.integers(1, 3)),
                draw(st.booleans()),
                needs,
            )
        )
    return specs


def rows_of(number: int, spec: StepSpec, inputs: Sequence[str]) -> list[dict[str, Any]]:
    """Return the only correct result, a function of the step and its inputs."""
    rows = []
    for row in range(spec.rows):
        text = f"{number}.{row}({','.join(inputs)})"
        value = hashlib.sha256(text.encode()).hexdigest()[:12]
        rows.append({"value": value, "maybe": None if spec.null else f"maybe {value}"})
    return rows


def expected_outcomes(plan: Sequence[StepSpec]) -> list[tuple[str, list[dict[str, Any]]]]:
    outcomes: list[tuple[str, list[dict[str, Any]]]] = []
    for number, spec in enumerate(plan, 1):
        inputs: list[str] = []
        for need in spec.needs:
            status, rows = outcomes[need.step - 1]
            if status == "done" and need.index < len(rows) and rows[need.index][need.field]:
                inputs.append(rows[need.index][need.field])
        if len(inputs) < len(spec.needs):
            outcomes.append(("skipped", []))
        elif spec.behaviour in ("done", "flaky"):
            outcomes.append(("done", rows_of(number, spec, inputs)))
        else:
            status = {"empty": "empty", "hangs": "timed_out"}.get(spec.behaviour, "failed")
            outcomes.append((status, []))
    return outcomes


@dataclass
class RunTools:
    """The tools of one run: each call behaves as its step specifies."""

    specs: Sequence[StepSpec]
    release: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)

    def run(self, arguments: Mapping[str, Any], context: CallContext) -> Any:
        number = int(context.step[1:])
        spec = self.specs[number - 1]
        self.calls.append(context.step)
        if spec.behaviour == "raises":
            raise ValueError("no luck")
        if spec.behaviour == "refuses":
            raise ToolError("cannot")
        if spec.behaviour == "flaky" and self.calls.count(context.step) == 1:
            raise ConnectionError("once")
        if spec.behaviour == "undeclared":
            return {"other": 1, "price": 2}
        if spec.behaviour == "empty":
            return []
        return rows_of(number, spec, [arguments[name] for name in INPUTS if name in arguments])

    def run_blocking(self, arguments: Mapping[str, Any], context: CallContext) -> Any:
        if self.specs[int(context.step[1:]) - 1].behaviour == "hangs":
            self.release.wait(20)
        return self.run(arguments, context)

    async def run_awaiting(self, arguments: Mapping[str, Any], context: CallContext) -> Any:
        if self.specs[int(context.step[1:]) - 1].behaviour == "hangs":
            await asyncio.sleep(20)
        return self.run(arguments, context)

    def tools(self) -> list[ToolSpec]:
        takes, results = ("number", *INPUTS), ("value", "maybe")
        return [
            tool("block", self.run_blocking, takes=takes, results=results),
            tool("await_", self.run_blocking, self.run_awaiting, takes=takes, results=results),
        ]

    def plan(self) -> str:
        steps = []
        for number, spec in enumerate(self.specs, 1):
            inputs = zip(INPUTS, spec.needs, strict=False)
            arguments: tuple[Any, ...] = (("number", Literal(number)), *inputs)
            steps.append(Step("block" if number % 2 else "await_", arguments))
        return str(Plan(tuple(steps)))


def run_plan(mode: Blocking | Awaiting, plan: Sequence[StepSpec]) -> Answer:
    run_tools = RunTools(plan)
    graph = graph_of(run_tools.tools(), run_tools.plan(), step_seconds=STEP_SECONDS, concurrency=12)
    start = time.perf_counter()
    try:
        answer = mode(graph)
    finally:
        run_tools.release.set()
    assert time.perf_counter() - start < STEP_SECONDS * len(plan) + 3.0
    executed = {step["step"] for step in answer.steps if step["status"] != "skipped"}
    assert {name for name in run_tools.calls if name not in executed} == set()
    return answer


@settings(max_examples=at_most(30), deadline=None)
@given(step_specs())
def test_steps_of_random_plans_end_as_expected_in_sync_and_async_runs(
    plan: list[StepSpec],
) -> None:
    expected = expected_outcomes(plan)
    blocking, awaiting = run_plan(Blocking(), plan), run_plan(Awaiting(), plan)
    for answer in (blocking, awaiting):
        assert [step["step"] for step in answer.steps] == [f"s{n + 1}" for n in range(len(plan))]
        assert [(step["status"], step["rows"]) for step in answer.steps] == expected
        for number, (status, _) in enumerate(expected, 1):
            step = step_of(answer, f"s{number}")
            assert bool(step["error"]) == (status in ("failed", "timed_out", "skipped"))
            assert (step["attempts"] == 0) == (status == "skipped")
        assert len(answer.missing) == sum(status != "done" for status, _ in expected)
        json.dumps(answer.to_json())
    evidence_texts = [
        [(item["id"], item["step"], item["text"]) for item in answer.evidence]
        for answer in (blocking, awaiting)
    ]
    assert evidence_texts[0] == evidence_texts[1]
    assert blocking.text == awaiting.text
