"""A process that mends a plan under a SQLite checkpointer, and kills itself at a step.

``python -m tests.graph.mend_worker FOLDER STEP`` logs each call in ``FOLDER/log`` before it does
anything, and writes the answer to ``FOLDER/answer.json``. A second process resumes the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from casewright.graph import build_graph
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.tools import CallContext, Toolbox
from tests.graph.helpers import QUESTION, Arguments, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
FIRST = "s1 = find(a=question)\ns2 = work()"
REST = "s1 = work()\ns2 = search(a=s1.value)\ns3 = work(a=s2.value)"


class TwoPlans:
    """A planner that returns a first plan, and another one for the remaining steps."""

    name = "two"

    def __init__(self, first: str, rest: str) -> None:
        self.first, self.rest = parse_plan(first), parse_plan(rest)
        self.requests: list[PlanRequest] = []

    def plan(self, request: PlanRequest) -> PlanResult:
        self.requests.append(request)
        return PlanResult(self.rest if request.failures else self.first, self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def main(folder: Path, last_step: str) -> None:
    def work(arguments: Arguments, context: CallContext) -> list[str]:
        with (folder / "log").open("a") as log:
            log.write(f"{context.step} {context.key} {os.getpid()}\n")
        if context.step == last_step:
            # Earlier steps count as finished only when their results are saved.
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        return [context.step] if context.step != "s1" else []

    tools = Toolbox([tool(name, work) for name in ("find", "work", "search")])
    with SqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
        graph = build_graph(tools, TwoPlans(FIRST, REST), checkpointer=saver, mend="empty")
        has_begun = graph.get_state(CONFIG).next
        state = graph.invoke(None if has_begun else {"question": QUESTION}, CONFIG)
    (folder / "answer.json").write_text(json.dumps(state["answer"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
