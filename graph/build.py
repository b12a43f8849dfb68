"""The compiled graph: plan → approve, where a plan waits for approval → execute → generate."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from casewright.errors import PlanError
from casewright.graph import approval, traces
from casewright.graph.answer import Answer
from casewright.graph.approval import Approve
from casewright.graph.call import since
from casewright.graph.checkpoint_reading import strict
from casewright.graph.evidence import collect, shortfalls
from casewright.graph.execute import Execution
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import GenerationRequest, Generator, checked
from casewright.graph.latencies import Latencies
from casewright.graph.limits import Limits
from casewright.graph.outcome import Outcome
from casewright.graph.planning import check_tools, plan_within
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState, run_context
from casewright.graph.traces import TracedNode
from casewright.planner import Plan, Planner, PlanRequest, parse_plan
from casewright.planner.price import Price, price_plan
from casewright.tools import CallContext, Toolbox
from casewright.tools.body import Body, Work

Graph = CompiledStateGraph[RunState, RunContext, AskInput, AskOutput]
#: Threads beside the steps' own: the node, and LangGraph's stream.
_SPARE_THREADS = 4


def build_graph(
    toolbox: Toolbox,
    planner: Planner,
    generator: Generator | None = None,
    *,
    limits: Limits | None = None,
    checkpointer: Any = None,
    approve: Approve = "declared",
    latencies: Latencies | None = None,
) -> Graph:
    """Compile the graph that plans, executes and answers.

    It is invoked with ``AskInput`` and, where tools need to know the user, a ``RunContext``; it
    returns ``AskOutput``, read by ``Answer.from_state``. With ``stream_mode="custom"`` it yields
    events: ``plan``, ``step_started``, ``step_report``, ``step_ended``, ``answer``.

    Args:
        toolbox: The tools.
        planner: Writes the plan.
        generator: Words the answer; by default it quotes the evidence.
        limits: The budgets.
        checkpointer: By default none is compiled in: a program that embeds the graph supplies one,
            and then had better run it with ``durability="sync"``, as is done here with one. The
            checkpointer reads nothing but plain values; see ``strict``.
        approve: Plans that wait for a person before anything runs, by LangGraph's interrupt: those
            with a tool that declares ``approval``, and beside them ``"always"`` all, or those above
            a price, ``{"calls": 3, "cost": 0.5}``. A plan is resumed with ``"yes"``, ``"no"`` or
            the text of another plan; what that breaks comes back in a new interrupt.
        latencies: Measured latencies, by which plans are priced; the graph's own by default.

    Raises (when invoked):
        InputError: Question, context or run context are unusable.
        PlanError: The planner's plan, or an edited one, is not valid for the request: nothing of
            it is run.
    """
    approval.check_approve(approve)
    generator, limits = generator or ExtractiveGenerator(), limits or Limits()
    nodes = _Nodes(toolbox, planner, generator, limits, approve, latencies or Latencies())
    graph = StateGraph(
        RunState, context_schema=RunContext, input_schema=AskInput, output_schema=AskOutput
    )
    graph.add_node("plan", TracedNode(nodes.plan, planned=False))
    graph.add_node("approve", TracedNode(nodes.approve, planned=True))
    graph.add_node("execute", TracedNode(nodes.execute, planned=True))
    graph.add_node("generate", TracedNode(nodes.generate, planned=True))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", _after_plan, ["approve", "execute"])
    graph.add_conditional_edges("approve", _after_approve, ["approve", "execute", "generate"])
    graph.add_edge("execute", "generate")
    graph.add_edge("generate", END)
    compiled = graph.compile(checkpointer=strict(checkpointer), name=traces.NAME)
    # A synchronous run gives every step a thread; a step that waits holds its own.
    config: RunnableConfig = {
        "max_concurrency": nodes.limits.steps + _SPARE_THREADS,
        "tags": [traces.TAG],
    }
    if checkpointer is not None:
        # LangGraph saves while the next node runs, by default: a run killed then would be resumed
        # with another plan and other keys. No tool is called before its plan is saved.
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync"}
    return compiled.with_config(config)


def nested_config(outer: RunnableConfig) -> RunnableConfig:
    """Return the config for a run of the graph inside the run of ``outer``.

    LangGraph saves while the next node runs, by default: a run killed then would call tools again
    that have been called. So results are saved at once, unless the outer run chose otherwise. Its
    bound of concurrency is for its own nodes, or for a batch, and not for a plan's steps.
    """
    config: Any = {name: value for name, value in outer.items() if name != "max_concurrency"}
    configurable = outer.get("configurable", {})
    if configurable.get(CONFIG_KEY_CHECKPOINTER):
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync", **configurable}
    return cast("RunnableConfig", config)


@dataclass(frozen=True)
class _Nodes:
    """The nodes, each as the body of a blocking and of an awaiting call."""

    toolbox: Toolbox
    planner: Planner
    generator: Generator
    limits: Limits
    approving: Approve
    latencies: Latencies

    def plan(self, state: RunState) -> Body[dict[str, Any]]:
        # The state's budget is that of the thread's last run.
        state = {**state, "budget": {}}
        context, request, limits = run_context(), self._request(state), self._limits(state)
        check_tools(context.limits, request.toolbox)
        planner, measured = context.planner or self.planner, self.latencies.seconds()
        plan, planning = yield from plan_within(planner, request, limits, measured)
        price = Price(**planning["price"])
        reasons = (
            approval.why_approve(policy, plan, price, request.toolbox)
            for policy in (self.approving, context.approve)
        )
        why = next(filter(None, reasons), "")
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        return {
            "plan": str(plan),
            "planning": planning,
            "run_id": str(uuid.uuid4()),
            "budget": limits.budget(),
            "approval": {"why": why} if why else {},
        }

    def approve(self, state: RunState) -> Body[dict[str, Any]]:
        request, limits = self._request(state), self._limits(state)
        question = approval.card(state["plan"], state["planning"], state["approval"])
        reply = yield Work(lambda: interrupt(question), lambda: _interrupt(question))
        decision, text = approval.read_reply(reply)
        planning = {**state["planning"], "approval": decision}
        if decision == "yes":
            return {"planning": planning, "approval": {"reply": decision, "plan": state["plan"]}}
        if decision == "no":
            skipped = approval.refused(parse_plan(state["plan"]))
            return {"planning": planning, "approval": {"reply": decision}, "outcomes": skipped}
        plan, wrong = approval.read_plan(text, lambda plan: self._violations(plan, request, limits))
        if plan is None:
            # A new superstep gives the next question its own id: an earlier reply that is sent
            # again answers nothing.
            return {"approval": {"why": question["why"], **wrong}}
        attempts, measured = limits.retry.max_attempts, self.latencies.seconds()
        price = price_plan(plan, request.toolbox, attempts=attempts, measured=measured)
        planning |= {"price": price.to_json(), "left_out": []}
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        replied = {"reply": decision, "plan": str(plan)}
        return {"plan": str(plan), "planning": planning, "approval": replied}

    def execute(self, state: RunState) -> Body[dict[str, Any]]:
        context, request, limits = run_context(), self._request(state), self._limits(state)
        plan = parse_plan(str(state["plan"]))
        # A planner of another package, or an edit of the state, may have written it.
        for violation in self._violations(plan, request, limits):
            raise violation
        approved = state.get("approval", {}).get("plan") == state["plan"]
        if not approved and (tools := approval.declaring(plan, request.toolbox)):
            raise PlanError(
                f"The plan calls {', '.join(tools)}, and nobody has approved it.",
                "Change a plan in the node approve, not after it.",
            )
        execution = Execution(
            plan=plan,
            toolbox=request.toolbox,
            question=request.question,
            context=request.context,
            caller=CallContext(
                run_id=state["run_id"], question=request.question, scope=dict(context.scope)
            ),
            limits=limits,
            write=get_stream_writer(),
        )
        outcomes = yield Work(lambda: execution.run(get_config()), execution.arun)
        self.latencies.add(outcomes)
        return {"outcomes": outcomes}

    def generate(self, state: RunState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        generator = self.generator
        outcomes = [Outcome.from_json(outcome) for outcome in state["outcomes"]]
        toolbox = run_context().toolbox or self.toolbox
        request = GenerationRequest(
            question=state["question"],
            evidence=collect(parse_plan(state["plan"]), outcomes, toolbox),
            missing=[*state["planning"].get("left_out", ()), *shortfalls(outcomes)],
            history=_value(state, "history", ()),
        )
        generation = yield Work(
            lambda: generator.generate(request), lambda: generator.agenerate(request)
        )
        text, citations = generation.text, generation.citations
        if citations is None:
            text, citations = checked(text, request.evidence)
        ends = [step["started"] + step["milliseconds"] for step in state["outcomes"]]
        answer = Answer(
            text=text,
            citations=list(citations),
            evidence=[item.to_json() for item in request.evidence],
            missing=list(request.missing),
            plan=state["plan"],
            planner=state["planning"],
            generator=generation.generator or generator.name,
            steps=state["outcomes"],
            usage={
                "planning_ms": state["planning"]["milliseconds"],
                "execution_ms": round(max(ends, default=0.0), 3),
                "generation_ms": since(started),
                "planner_tokens": state["planning"]["tokens"],
                "generator_tokens": dict(generation.tokens),
            },
            run_id=state["run_id"],
        ).to_json()
        get_stream_writer()({"event": "answer", "text": text, "citations": list(citations)})
        # The next question on this thread starts with a context and a history of its own.
        return {"answer": answer, "context": {}, "history": []}

    def _request(self, state: RunState) -> PlanRequest:
        context = run_context()
        return PlanRequest(
            question=state.get("question", ""),
            toolbox=context.toolbox or self.toolbox,
            context=_value(state, "context", {}),
            history=_value(state, "history", ()),
            max_steps=self._limits(state).steps,
        )

    def _limits(self, state: RunState) -> Limits:
        # A resumed run keeps the budget that it began with.
        return self.limits.within(run_context().limits).within(state.get("budget"))

    def _violations(self, plan: Plan, request: PlanRequest, limits: Limits) -> Iterator[PlanError]:
        yield from request.violations(plan)
        if excess := limits.excess(price_plan(plan, request.toolbox)):
            yield PlanError(f"The plan is beyond the budget: {excess}.", "Leave out steps.")


async def _interrupt(value: Any) -> Any:
    return interrupt(value)


def _after_plan(state: RunState) -> str:
    return "approve" if state.get("approval") else "execute"


def _after_approve(state: RunState) -> str:
    return {"no": "generate", None: "approve"}.get(state["approval"].get("reply"), "execute")


def _value(state: RunState, name: str, empty: Any) -> Any:
    value = state.get(name)
    return empty if value is None else value
