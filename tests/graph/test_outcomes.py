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
class Doing:
    """What one step of a random plan does; ``rows`` of it hold a null in ``maybe``."""

    behaviour: str
    rows: int
    null: bool
    needs: Sequence[StepRef]


@st.composite
def doings(draw: st.DrawFn) -> list[Doing]:
    made: list[Doing] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        reference = st.builds(
            StepRef,
            st.integers(1, max(number - 1, 1)),
            st.sampled_from(["value", "value", "maybe"]),
            st.sampled_from([0, 0, 0, 1, 2]),
        )
        needs = draw(st.lists(reference, max_size=3)) if number > 1 else []
        made.append(
            Doing(
                draw(st.sampled_from(BEHAVIOURS)),
                draw(st.integers(1, 3)),
                draw(st.booleans()),
                needs,
            )
        )
    return made


def rows_of(number: int, doing: Doing, inputs: Sequence[str]) -> list[dict[str, Any]]:
    """The one right result: a function of the step and of what it was given."""
    made = []
    for row in range(doing.rows):
        text = f"{number}.{row}({','.join(inputs)})"
        value = hashlib.sha256(text.encode()).hexdigest()[:12]
        made.append({"value": value, "maybe": None if doing.null else f"maybe {value}"})
    return made


def expected(plan: Sequence[Doing]) -> list[tuple[str, list[dict[str, Any]]]]:
    ends: list[tuple[str, list[dict[str, Any]]]] = []
    for number, doing in enumerate(plan, 1):
        inputs: list[str] = []
        for need in doing.needs:
            status, rows = ends[need.step - 1]
            if status == "done" and need.index < len(rows) and rows[need.index][need.field]:
                inputs.append(rows[need.index][need.field])
        if len(inputs) < len(doing.needs):
            ends.append(("skipped", []))
        elif doing.behaviour in ("done", "flaky"):
            ends.append(("done", rows_of(number, doing, inputs)))
        else:
            status = {"empty": "empty", "hangs": "timed_out"}.get(doing.behaviour, "failed")
            ends.append((status, []))
    return ends


@dataclass
class Workshop:
    """The tools of one run: each does what the plan's step says."""

    doings: Sequence[Doing]
    release: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)

    def run(self, given_: Mapping[str, Any], context: CallContext) -> Any:
        number = int(context.step[1:])
        doing = self.doings[number - 1]
        self.calls.append(context.step)
        if doing.behaviour == "raises":
            raise ValueError("no luck")
        if doing.behaviour == "refuses":
            raise ToolError("cannot")
        if doing.behaviour == "flaky" and self.calls.count(context.step) == 1:
            raise ConnectionError("once")
        if doing.behaviour == "undeclared":
            return {"other": 1, "price": 2}
        if doing.behaviour == "empty":
            return []
        return rows_of(number, doing, [given_[name] for name in INPUTS if name in given_])

    def blocking(self, given_: Mapping[str, Any], context: CallContext) -> Any:
        if self.doings[int(context.step[1:]) - 1].behaviour == "hangs":
            self.release.wait(20)
        return self.run(given_, context)

    async def awaiting(self, given_: Mapping[str, Any], context: CallContext) -> Any:
        if self.doings[int(context.step[1:]) - 1].behaviour == "hangs":
            await asyncio.sleep(20)
        return self.run(given_, context)

    def tools(self) -> list[ToolSpec]:
        takes, results = ("number", *INPUTS), ("value", "maybe")
        return [
            tool("block", self.blocking, takes=takes, results=results),
            tool("await_", self.blocking, self.awaiting, takes=takes, results=results),
        ]

    def plan(self) -> str:
        steps = []
        for number, doing in enumerate(self.doings, 1):
            inputs = zip(INPUTS, doing.needs, strict=False)
            arguments: tuple[Any, ...] = (("number", Literal(number)), *inputs)
            steps.append(Step("block" if number % 2 else "await_", arguments))
        return str(Plan(tuple(steps)))


def run_one(mode: Blocking | Awaiting, plan: Sequence[Doing]) -> Answer:
    shop = Workshop(plan)
    graph = graph_of(shop.tools(), shop.plan(), step_seconds=STEP_SECONDS, concurrency=12)
    began = time.perf_counter()
    try:
        answer = mode(graph)
    finally:
        shop.release.set()
    assert time.perf_counter() - began < STEP_SECONDS * len(plan) + 3.0
    run = {step["step"] for step in answer.steps if step["status"] != "skipped"}
    assert {name for name in shop.calls if name not in run} == set()
    return answer


@settings(max_examples=at_most(30), deadline=None)
@given(doings())
def test_steps_of_random_plans_end_as_expected_in_sync_and_async_runs(
    plan: list[Doing],
) -> None:
    right = expected(plan)
    blocking, awaiting = run_one(Blocking(), plan), run_one(Awaiting(), plan)
    for answer in (blocking, awaiting):
        assert [step["step"] for step in answer.steps] == [f"s{n + 1}" for n in range(len(plan))]
        assert [(step["status"], step["rows"]) for step in answer.steps] == right
        for number, (status, _) in enumerate(right, 1):
            step = step_of(answer, f"s{number}")
            assert bool(step["error"]) == (status in ("failed", "timed_out", "skipped"))
            assert (step["attempts"] == 0) == (status == "skipped")
        assert len(answer.missing) == sum(status != "done" for status, _ in right)
        json.dumps(answer.to_json())
    plain = [
        [(e["id"], e["step"], e["text"]) for e in answer.evidence]
        for answer in (blocking, awaiting)
    ]
    assert plain[0] == plain[1]
    assert blocking.text == awaiting.text
