"""Processes that run random plans under a SQLite checkpointer, to be killed and replaced.

``python -m tests.graph.crash_worker run|resume sync|async FOLDER SEED ...`` runs each seed's plan
in a process of its own, all at once. Every call of a tool is a line of ``FOLDER/SEED.log``
before it does anything; the outcomes are written to ``FOLDER/SEED.json``.

``run:3,resume:5`` does so twice: in processes that kill themselves as soon as three calls of their
plan have begun, and then in others that do at the fifth. In ``run:midway`` each does so as soon as
some of its steps' results are kept, and never all: how many, the seed and the mode say.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from casewright.graph.random_plans import MAX_NEEDS, Dag, random_dag
from casewright.planner import Literal, Plan, Step, StepRef
from casewright.tools import CallContext, ToolSpec
from tests.graph.helpers import QUESTION, graph_of, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
INPUTS = tuple(f"in{i}" for i in range(MAX_NEEDS))
#: More calls, or results, than any plan has, however many are taken off.
NEVER = math.inf
#: Under this LangGraph keeps what a step returned.
RETURNED = "__return__"
#: When a process kills itself: see above.
MIDWAY = "midway"


def dag_of(seed: int) -> Dag:
    """A plan of at least four steps."""
    rng = random.Random(seed)
    while True:
        dag = random_dag(rng, shortest=0.04, longest=0.14)
        if len(dag.seconds) >= 4:
            return dag


def plan_of(dag: Dag) -> str:
    steps = []
    for seconds, needs in zip(dag.seconds, dag.needs, strict=True):
        inputs = [(INPUTS[i], StepRef(need + 1, "value")) for i, need in enumerate(needs)]
        steps.append(Step("work", (("seconds", Literal(seconds)), *inputs)))
    return str(Plan(tuple(steps)))


def value_of(step: str, inputs: Sequence[str]) -> str:
    """A step's one right result."""
    return hashlib.sha256(f"{step}({','.join(inputs)})".encode()).hexdigest()[:16]


def right_values(dag: Dag) -> list[str]:
    values: list[str] = []
    for number, needs in enumerate(dag.needs, 1):
        values.append(value_of(f"s{number}", [values[need] for need in needs]))
    return values


def work_tool(log: Path, last: float) -> ToolSpec:
    """A tool whose process kills itself as soon as ``last`` calls have begun."""

    def begin(context: CallContext) -> None:
        line = {"step": context.step, "pid": os.getpid(), "at": time.time(), "key": context.key}
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if len(log.read_text().splitlines()) >= last:
            os.kill(os.getpid(), signal.SIGKILL)

    def made(given: Mapping[str, Any], context: CallContext) -> str:
        return value_of(context.step, [given[name] for name in INPUTS if name in given])

    def run(given: Mapping[str, Any], context: CallContext) -> str:
        begin(context)
        time.sleep(given["seconds"])
        return made(given, context)

    async def run_async(given: Mapping[str, Any], context: CallContext) -> str:
        begin(context)
        await asyncio.sleep(given["seconds"])
        return made(given, context)

    return tool("work", run, run_async, takes=("seconds", *INPUTS))


class KillingSaver(SqliteSaver):
    """Has its process kill itself as soon as so many results of steps are kept.

    LangGraph keeps them in other threads, on a busy machine long after they are there: they wait
    for the checkpoint they belong to, and what ends the steps' node waits for the kill.
    """

    results, alone = NEVER, threading.Condition()

    def put(self, config: Any, checkpoint: Any, *given: Any, **more: Any) -> Any:
        if _is_too_late(checkpoint["channel_values"]):
            threading.Event().wait()
        with self.alone:
            kept = super().put(config, checkpoint, *given, **more)
            self.alone.notify_all()
        return kept

    def put_writes(self, config: Any, writes: Any, *given: Any, **more: Any) -> None:
        if _is_too_late(dict(writes)):
            threading.Event().wait()
        with self.alone:
            if _results(writes):
                self.alone.wait_for(lambda: self.get_tuple(config))
            super().put_writes(config, writes, *given, **more)
            _count(writes)


class AsyncKillingSaver(AsyncSqliteSaver):
    """Has its process kill itself as soon as so many results of steps are kept."""

    async def aput_writes(self, config: Any, writes: Any, *given: Any, **more: Any) -> None:
        await super().aput_writes(config, writes, *given, **more)
        _count(writes)


def _is_too_late(values: Mapping[str, Any]) -> bool:
    return KillingSaver.results < NEVER and bool(values.get("outcomes"))


def _results(writes: Sequence[tuple[str, Any]]) -> int:
    return sum(channel == RETURNED for channel, _ in writes)


def _count(writes: Sequence[tuple[str, Any]]) -> None:
    KillingSaver.results -= _results(writes)
    if KillingSaver.results <= 0:
        os.kill(os.getpid(), signal.SIGKILL)


def blocking(order: str, last: float, folder: Path, seed: int) -> list[dict[str, Any]]:
    with KillingSaver.from_conn_string(str(folder / f"{seed}.db")) as saver:
        graph = _graph(folder, seed, last, saver)
        begun = order == "resume" and graph.get_state(CONFIG).next
        answer = graph.invoke(None if begun else {"question": QUESTION}, CONFIG)["answer"]
        return list(answer["steps"])


async def awaiting(order: str, last: float, folder: Path, seed: int) -> list[dict[str, Any]]:
    async with AsyncKillingSaver.from_conn_string(str(folder / f"{seed}.db")) as saver:
        graph = _graph(folder, seed, last, saver)
        begun = order == "resume" and (await graph.aget_state(CONFIG)).next
        state = await graph.ainvoke(None if begun else {"question": QUESTION}, CONFIG)
        return list(state["answer"]["steps"])


def _graph(folder: Path, seed: int, last: float, saver: Any) -> Any:
    plan = plan_of(dag_of(seed))
    return graph_of([work_tool(folder / f"{seed}.log", last)], plan, checkpointer=saver)


def main(orders: str, mode: str, folder: Path, seeds: Sequence[int]) -> None:
    for each in orders.split(","):
        order, _, last = each.partition(":")
        # Forked before anything ran: fresh processes, without the second that the imports take.
        children = []
        for seed in seeds:
            child = os.fork()
            if not child:
                run_one(order, last, mode, folder, seed)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


def run_one(order: str, ends: str, mode: str, folder: Path, seed: int) -> None:
    if ends == MIDWAY:
        size = len(dag_of(seed).seconds)
        KillingSaver.results = random.Random(f"{mode}{seed}").randrange(1, size)
    last = int(ends) if ends.isdecimal() else NEVER
    try:
        if mode == "sync":
            steps = blocking(order, last, folder, seed)
        else:
            steps = asyncio.run(awaiting(order, last, folder, seed))
        (folder / f"{seed}.json").write_text(json.dumps(steps))
    except BaseException:  # noqa: BLE001 - the child must never go on as its parent
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), [int(seed) for seed in sys.argv[4:]])
