"""A plan that needs approval waits before any call; the reply runs, edits or rejects it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from casewright.errors import InputError, PlanError
from casewright.graph import Answer, Limits, RunContext, build_graph
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import Toolbox, tool_from_function
from tests.graph.helpers import QUESTION, fresh_process

CONFIG: Any = {"configurable": {"thread_id": "one"}}
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
PLAN = 's1 = find(query="phone")\ns2 = order(item_id=s1.item_id)'
ONLY_FIND = "s1 = find(query=question)"


class RecordedGraph:
    """A graph over two tools that record their calls."""

    def __init__(
        self, mode: str = "sync", plan: str = PLAN, *, declares: bool = False, **options: Any
    ):
        self.mode = mode
        self.calls: list[str] = []

        def find(query: str) -> dict[str, str]:
            """Finds."""
            self.calls.append("find")
            return {"item_id": query}

        def order(item_id: str) -> str:
            """Orders."""
            self.calls.append("order")
            return f"ordered {item_id}"

        toolbox = Toolbox(
            [
                tool_from_function(find, results=("item_id",), cost=0.1),
                tool_from_function(order, cost=2.0, approval=declares),
            ]
        )
        planner = FixedPlanner(parse_plan(plan))
        self.graph = build_graph(toolbox, planner, checkpointer=InMemorySaver(), **options)

    def run(self, inputs: Any, **context: Any) -> Any:
        options = {"context": RunContext(**context)}
        if self.mode == "sync":
            return self.graph.invoke(inputs, CONFIG, **options)
        return asyncio.run(self.graph.ainvoke(inputs, CONFIG, **options))

    def ask(self, **context: Any) -> Any:
        return interrupt_value(self.run({"question": QUESTION}, **context))

    def reply(self, reply: Any) -> Any:
        return self.run(Command(resume=reply))


def interrupt_value(state: Any) -> Any:
    (pause,) = state["__interrupt__"]
    return pause.value


@MODES
def test_plan_waits_with_its_price_and_runs_after_approval(mode: str) -> None:
    recorded = RecordedGraph(mode, approve="always")
    payload = recorded.ask()
    assert recorded.calls == []
    assert (payload["kind"], payload["plan"]) == ("approval", PLAN)
    assert payload["price"]["calls"] == {"find": 1, "order": 1}
    assert payload["price"]["cost"] == pytest.approx(4.2)
    answer = Answer.from_state(recorded.reply("yes"))
    assert recorded.calls == ["find", "order"]
    assert answer.planner["approval"] == "yes"


@MODES
def test_rejected_plan_calls_no_tool_and_the_answer_says_so(mode: str) -> None:
    recorded = RecordedGraph(mode, approve="always")
    recorded.ask()
    answer = Answer.from_state(recorded.reply(False))
    assert recorded.calls == []
    assert [step["status"] for step in answer.steps] == ["skipped", "skipped"]
    assert answer.missing[0] == "s1 (find) was skipped. The plan was not approved."
    assert answer.planner["approval"] == "no"


@pytest.mark.parametrize("rejection", [False, "no", " No ", {"plan": False}, {"plan": "no"}])
def test_plan_is_rejected_by_every_form_of_no(rejection: Any) -> None:
    recorded = RecordedGraph(approve="always")
    recorded.ask()
    assert Answer.from_state(recorded.reply(rejection)).planner["approval"] == "no"
    assert recorded.calls == []


@pytest.mark.parametrize("reply", [None, 0, 1, {}, [], {"plan": 1}, "yes please"])
def test_invalid_reply_approves_nothing_and_is_asked_again_with_violations(reply: Any) -> None:
    recorded = RecordedGraph(approve="always")
    first = recorded.run({"question": QUESTION})["__interrupt__"][0]
    state = recorded.run(Command(resume={first.id: reply}))
    assert interrupt_value(state)["violations"]
    assert recorded.calls == []


@MODES
def test_edited_plan_runs_instead_of_the_plan_of_the_planner(mode: str) -> None:
    recorded = RecordedGraph(mode, approve="always")
    recorded.ask()
    answer = Answer.from_state(recorded.reply({"plan": ONLY_FIND}))
    assert recorded.calls == ["find"]
    assert (answer.plan, answer.planner["approval"]) == (ONLY_FIND, "edited")
    assert answer.planner["price"]["calls"] == {"find": 1}


@MODES
@pytest.mark.parametrize(
    ("edited", "violation"),
    [
        ('s1 = order(item_id="P99")', "item_id may not be the text"),
        ("s1 = delete()", "There is no tool delete"),
        ("maybe", "yes, no nor a plan"),
        ("", "yes, no nor a plan"),
        (["s1"], "yes, no nor a plan"),
        ("\n".join(f"s{n} = find(query=question)" for n in range(1, 4)), "calls 3, at most 2"),
    ],
)
def test_invalid_edited_plan_causes_a_new_interrupt_with_its_violations(
    mode: str, edited: Any, violation: str
) -> None:
    recorded = RecordedGraph(mode, approve="always", limits=Limits(calls=2))
    first = recorded.run({"question": QUESTION})["__interrupt__"][0]
    second = recorded.reply(edited)["__interrupt__"][0]
    assert first.id != second.id
    assert violation in second.value["violations"][0]
    assert second.value["plan"] == PLAN
    assert recorded.calls == []
    assert Answer.from_state(recorded.reply(True)).plan == PLAN
    assert recorded.calls == ["find", "order"]


def test_plan_waits_when_one_of_its_tools_declares_approval() -> None:
    recorded = RecordedGraph(declares=True)
    assert recorded.ask()["why"] == "Approval is declared by order."
    assert Answer.from_state(recorded.reply("yes")).steps[1]["status"] == "done"
    other = RecordedGraph(plan=ONLY_FIND, declares=True)
    assert "answer" in other.run({"question": QUESTION})


def test_plan_changed_before_execution_calls_no_tool_that_declares_approval() -> None:
    recorded = RecordedGraph(plan=ONLY_FIND, declares=True)
    recorded.graph.invoke({"question": QUESTION}, CONFIG, interrupt_before=["execute"])
    recorded.graph.update_state(CONFIG, {"plan": PLAN})
    with pytest.raises(PlanError, match="The plan was not approved"):
        recorded.run(None)
    assert recorded.calls == []


@pytest.mark.parametrize("approve", ["always", {"cost": 3}])
def test_plan_changed_after_approval_or_price_check_calls_no_tool(
    approve: Any,
) -> None:
    recorded = RecordedGraph(plan=ONLY_FIND, approve=approve)
    inputs: Any = {"question": QUESTION}
    if approve == "always":
        recorded.run(inputs)
        inputs = Command(resume="yes")
    recorded.graph.invoke(inputs, CONFIG, interrupt_before=["execute"])
    recorded.graph.update_state(CONFIG, {"plan": PLAN})
    with pytest.raises(PlanError, match=r"The plan was not approved\. (Every|The price)"):
        recorded.run(None)
    assert recorded.calls == []


def test_interrupt_lists_the_steps_of_the_edited_plan_and_their_choices() -> None:
    recorded = RecordedGraph(approve="always", limits=Limits(calls=1))
    recorded.ask()
    payload = interrupt_value(recorded.reply(f"{ONLY_FIND}\ns2 = order(item_id=s1.item_id)"))
    assert payload["violations"]
    assert payload["steps"][1] == {"tool": "order", "arguments": {"item_id": "s1.item_id"}}
    assert payload["finished"] == 0
    tools = {tool["name"]: tool for tool in payload["choices"]["tools"]}
    assert tools["find"]["results"] == ["item_id"]
    (parameter,) = tools["order"]["parameters"]
    assert parameter["alone"] == {
        "values": [],
        "step": True,
        "text": False,
        "span": False,
        "number": False,
    }


def test_plan_waits_only_when_its_price_is_above_the_limit() -> None:
    assert "cost 4.2, at most 3" in RecordedGraph(approve={"cost": 3}).ask()["why"]
    assert "answer" in RecordedGraph(approve={"cost": 5}).run({"question": QUESTION})


def test_request_can_require_approval_but_cannot_waive_it() -> None:
    assert "Every plan" in RecordedGraph().ask(approve="always")["why"]
    assert "Every plan" in RecordedGraph(approve="always").ask(approve="declared")["why"]
    assert "answer" in RecordedGraph().run({"question": QUESTION})


def test_edited_plan_is_limited_by_the_budget_of_the_request() -> None:
    recorded = RecordedGraph(plan=ONLY_FIND, approve="always")
    recorded.ask(limits={"calls": 1})
    assert "calls 2, at most 1" in interrupt_value(recorded.reply(PLAN))["violations"][0]


def test_next_question_of_a_thread_waits_again_with_a_new_budget() -> None:
    recorded = RecordedGraph(approve="always")
    recorded.ask(limits={"calls": 1})
    recorded.reply("no")
    payload = recorded.ask()
    assert payload["price"]["calls"] == {"find": 1, "order": 1}
    assert Answer.from_state(recorded.reply("yes")).missing == []


@pytest.mark.parametrize("approve", ["never", {}, {"rows": 3}, {"cost": -1}, 5])
def test_invalid_approval_policy_is_refused(approve: Any) -> None:
    with pytest.raises(InputError):
        RecordedGraph(approve=approve)
    with pytest.raises(InputError):
        RecordedGraph().ask(approve=approve)


#: A script that runs each stage in a forked process, which kills itself at the step ``last``.
STAGES_SCRIPT = """
import json, os, signal, sys, threading
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from casewright.graph import build_graph
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import Toolbox, tool_from_function

folder = Path(sys.argv[1])
CONFIG = {"configurable": {"thread_id": "one"}}
saved = threading.Event()

class Saver(SqliteSaver):
    def put_writes(self, config, writes, *arguments):
        super().put_writes(config, writes, *arguments)
        if any(channel == "__return__" for channel, _ in writes):
            saved.set()

def stage(name, inputs, last=None):
    if child := os.fork():
        os.waitpid(child, 0)
        return
    def step(query: str) -> str:
        with (folder / "log").open("a") as log:
            log.write(f"{name} {query}\\n")
        if query == last:
            # A step is finished once its result is saved.
            saved.wait(20)
            os.kill(os.getpid(), signal.SIGKILL)
        return "b"
    sources = {"query": ("literal", "step")}
    toolbox = Toolbox([tool_from_function(step, sources=sources, approval=True)])
    class Planner(FixedPlanner):
        def plan(self, request):
            with (folder / "log").open("a") as log:
                log.write(f"{name} planned\\n")
            return super().plan(request)
    planner = Planner(parse_plan('s1 = step(query="a")\\ns2 = step(query=s1.evidence)'))
    with Saver.from_conn_string(str(folder / "threads.db")) as saver:
        state = build_graph(toolbox, planner, checkpointer=saver).invoke(inputs, CONFIG)
        if "__interrupt__" in state:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "answer").write_text(json.dumps(state["answer"]["steps"]))
    os._exit(0)

stage("ask", {"question": "anything"})
stage("look", None)
stage("approve", Command(resume="yes"), last="b")
stage("go on", None)
"""


def test_approval_and_finished_steps_survive_a_kill_and_are_not_repeated(tmp_path: Path) -> None:
    process = fresh_process(STAGES_SCRIPT, str(tmp_path), seconds=60)
    assert process.stderr == ""
    assert (tmp_path / "log").read_text().splitlines() == [
        "ask planned",
        "approve a",
        "approve b",
        "go on b",
    ]
    steps = json.loads((tmp_path / "answer").read_text())
    assert [step["status"] for step in steps] == ["done", "done"]
