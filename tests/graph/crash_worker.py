"""Processes that run random plans under a SQLite checkpointer, kill themselves, and resume.

``python -m tests.graph.crash_worker run|resume sync|async FOLDER SEED ...`` runs each seed's plan
in a process of its own, all at the same time. Each call of a tool writes a line to
``FOLDER/SEED.log`` before it does anything; the outcomes are written to ``FOLDER/SEED.json``.

``run:3,resume:5`` runs the plans until three calls have begun and the processes kill themselves,
and resumes them in new processes, which kill themselves at the fifth call. With ``run:midway``, a
process kills itself after some, never all, of its results are saved; seed and mode set the number.
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
#: More than the calls or results of any plan.
UNLIMITED = math.inf
#: The channel to which LangGraph writes the return value of a task.
RETURNED = "__return__"
#: The limit of a process that kills itself after some of its results are saved.
MIDWAY = "midway"


def dag_of(seed: int) -> Dag:
    """Return a random plan of at least four steps."""
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
    """Return the only correct result of a step."""
    return hashlib.sha256(f"{step}({','.join(inputs)})".encode()).hexdigest()[:16]


def expected_values(dag: Dag) -> list[str]:
    values: list[str] = []
    for number, needs in enumerate(dag.needs, 1):
        values.append(value_of(f"s{number}", [values[need] for need in needs]))
    return values


def work_tool(log: Path, max_calls: float) -> ToolSpec:
    """Return a tool that kills its process as soon as ``max_calls`` calls have begun."""

    def begin(context: CallContext) -> None:
        entry = {"step": context.step, "pid": os.getpid(), "at": time.time(), "key": context.key}
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if len(log.read_text().splitlines()) >= max_calls:
            os.kill(os.getpid(), signal.SIGKILL)

    def make_value(arguments: Mapping[str, Any], context: CallContext) -> str:
        return value_of(context.step, [arguments[name] for name in INPUTS if name in arguments])

    def run(arguments: Mapping[str, Any], context: CallContext) -> str:
        begin(context)
        time.sleep(arguments["seconds"])
        return make_value(arguments, context)

    async def run_async(arguments: Mapping[str, Any], context: CallContext) -> str:
        begin(context)
        await asyncio.sleep(arguments["seconds"])
        return make_value(arguments, context)

    return tool("work", run, run_async, takes=("seconds", *INPUTS))


class KillingSaver(SqliteSaver):
    """A checkpointer that kills its process as soon as a number of results is saved.

    LangGraph saves in other threads, on a busy machine long after a step ended. So a result waits
    for the checkpoint it belongs to, and the checkpoint after all steps waits for the kill.
    """

    results_left, condition = UNLIMITED, threading.Condition()

    def put(self, config: Any, checkpoint: Any, *arguments: Any, **options: Any) -> Any:
        if _is_kill_overdue(checkpoint["channel_values"]):
            threading.Event().wait()
        with self.condition:
            saved_config = super().put(config, checkpoint, *arguments, **options)
            self.condition.notify_all()
        return saved_config

    def put_writes(self, config: Any, writes: Any, *arguments: Any, **options: Any) -> None:
        if _is_kill_overdue(dict(writes)):
            threading.Event().wait()
        with self.condition:
            if _count_results(writes):
                self.condition.wait_for(lambda: self.get_tuple(config))
            super().put_writes(config, writes, *arguments, **options)
            _count_down(writes)


class AsyncKillingSaver(AsyncSqliteSaver):
    """The asynchronous checkpointer that kills its process."""

    async def aput_writes(self, config: Any, writes: Any, *arguments: Any, **options: Any) -> None:
        await super().aput_writes(config, writes, *arguments, **options)
        _count_down(writes)


def _is_kill_overdue(values: Mapping[str, Any]) -> bool:
    return KillingSaver.results_left < UNLIMITED and bool(values.get("outcomes"))


def _count_results(writes: Sequence[tuple[str, Any]]) -> int:
    return sum(channel == RETURNED for channel, _ in writes)


def _count_down(writes: Sequence[tuple[str, Any]]) -> None:
    KillingSaver.results_left -= _count_results(writes)
    if KillingSaver.results_left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)


def run_sync(order: str, max_calls: float, folder: Path, seed: int) -> list[dict[str, Any]]:
    with KillingSaver.from_conn_string(str(folder / f"{seed}.db")) as saver:
        graph = _graph(folder, seed, max_calls, saver)
        has_begun = order == "resume" and graph.get_state(CONFIG).next
        answer = graph.invoke(None if has_begun else {"question": QUESTION}, CONFIG)["answer"]
        return list(answer["steps"])


async def run_async(order: str, max_calls: float, folder: Path, seed: int) -> list[dict[str, Any]]:
    async with AsyncKillingSaver.from_conn_string(str(folder / f"{seed}.db")) as saver:
        graph = _graph(folder, seed, max_calls, saver)
        has_begun = order == "resume" and (await graph.aget_state(CONFIG)).next
        state = await graph.ainvoke(None if has_begun else {"question": QUESTION}, CONFIG)
        return list(state["answer"]["steps"])


def _graph(folder: Path, seed: int, max_calls: float, saver: Any) -> Any:
    plan = plan_of(dag_of(seed))
    return graph_of([work_tool(folder / f"{seed}.log", max_calls)], plan, checkpointer=saver)


def main(orders: str, mode: str, folder: Path, seeds: Sequence[int]) -> None:
    for stage in orders.split(","):
        order, _, limit = stage.partition(":")
        # Forking saves each process the second that the imports take.
        children = []
        for seed in seeds:
            child = os.fork()
            if not child:
                run_seed(order, limit, mode, folder, seed)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


def run_seed(order: str, limit: str, mode: str, folder: Path, seed: int) -> None:
    if limit == MIDWAY:
        size = len(dag_of(seed).seconds)
        KillingSaver.results_left = random.Random(f"{mode}{seed}").randrange(1, size)
    max_calls = int(limit) if limit.isdecimal() else UNLIMITED
    try:
        if mode == "sync":
            steps = run_sync(order, max_calls, folder, seed)
        else:
            steps = asyncio.run(run_async(order, max_calls, folder, seed))
        (folder / f"{seed}.json").write_text(json.dumps(steps))
    except BaseException:  # noqa: BLE001 - a child must not continue as its parent
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), [int(seed) for seed in sys.argv[4:]])
