"""Random plans (DAGs) for measurements and tests of executors; their only tool waits."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.planner import Literal, Plan, Step, StepRef
from casewright.tools import CallContext, Parameter, Source, Toolbox, ToolSpec

#: Maximum number of a plan's steps, and of the earlier steps that one step needs.
MAX_STEPS, MAX_NEEDS = 12, 3
_STEP = frozenset({Source.STEP})


@dataclass(frozen=True, slots=True)
class Dag:
    """A random plan: each step's seconds, and the indices of the earlier steps that it needs."""

    seconds: Sequence[float]
    needs: Sequence[Sequence[int]]

    def plan(self) -> Plan:
        """Return the ``Plan`` with these steps."""
        steps = []
        for seconds, needs in zip(self.seconds, self.needs, strict=True):
            inputs = tuple((f"in{i}", StepRef(need + 1, "value")) for i, need in enumerate(needs))
            steps.append(Step("work", (("seconds", Literal(seconds)), *inputs)))
        return Plan(tuple(steps))

    def critical_path(self) -> float:
        """Return the seconds of the longest chain of steps, a lower bound for any schedule."""
        ends: list[float] = []
        for seconds, needs in zip(self.seconds, self.needs, strict=True):
            ends.append(seconds + max((ends[need] for need in needs), default=0.0))
        return max(ends)

    def waves(self) -> list[list[int]]:
        """Return the indices of the steps in waves: each step needs only steps of earlier waves."""
        depths: list[int] = []
        for needs in self.needs:
            depths.append(1 + max((depths[need] for need in needs), default=-1))
        return [[i for i, depth in enumerate(depths) if depth == n] for n in range(max(depths) + 1)]


def random_dag(
    rng: random.Random, *, shortest: float = 0.05, longest: float = 0.15, max_steps: int = MAX_STEPS
) -> Dag:
    """Return a random plan: at most ``max_steps`` steps of ``shortest`` to ``longest`` seconds."""
    step_count = rng.randint(1, max_steps)
    seconds = [round(rng.uniform(shortest, longest), 4) for _ in range(step_count)]
    needs = [
        sorted(rng.sample(range(index), rng.randint(0, min(index, MAX_NEEDS))))
        for index in range(step_count)
    ]
    return Dag(seconds, needs)


def work_toolbox() -> Toolbox:
    """Return a toolbox with a single tool, ``work``, which waits and returns one row."""
    inputs = tuple(Parameter(f"in{i}", sources=_STEP, required=False) for i in range(MAX_NEEDS))
    seconds = Parameter("seconds", kind="number", sources=frozenset({Source.NUMBER}))

    def run(arguments: Mapping[str, Any], context: CallContext) -> dict[str, str]:
        time.sleep(arguments["seconds"])
        return {"value": context.step}

    async def run_async(arguments: Mapping[str, Any], context: CallContext) -> dict[str, str]:
        await asyncio.sleep(arguments["seconds"])
        return {"value": context.step}

    return Toolbox(
        [ToolSpec("work", "Waits.", (seconds, *inputs), ("value",), run=run, run_async=run_async)]
    )
