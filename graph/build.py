"""The compiled graph: plan → execute → generate, with approve and revise where they are due."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from casewright.errors import PlanError, told
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
from casewright.graph.mend import (
    Mend,
    broken,
    check_mend,
    lesson,
    mended,
    rest_request,
    without_replaced,
)
from casewright.graph.outcome import Outcome
from casewright.graph.planning import check_tools, plan_in_time, plan_within, within
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState, run_context
from casewright.graph.traces import TracedNode
from casewright.planner import Plan, Planner, PlanRequest, Step, parse_plan
from casewright.planner.budget import trimmed
from casewright.planner.price import Price
from casewright.tools import CallContext, Toolbox
from casewright.tools.body import Body, Work
from casewright.tools.spec import NO_EVIDENCE

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
    mend: Mend = "off",
    retain: Callable[[Mapping[str, Any]], object] | None = None,
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
        mend: Lets the planner write the rest of a plan anew, once, where steps failed
            (``"failure"``), or also where they found nothing (``"empty"``). No step runs twice.
        retain: Receives what a mended run taught as the record of an annotated query (``query``,
            ``plan``, and ``context`` and ``history`` if there were any): the steps that found
            something, unless a tool failed. It may be called again if the process dies.

    Raises:
        InputError: There is no such mode of mending.

    Raises (when invoked):
        InputError: Question, context or run context are unusable.
        PlanError: The planner's plan, or an edited one, is not valid for the request: nothing of
            it is run.
    """
    approval.check_approve(approve)
    generator, limits = generator or ExtractiveGenerator(), limits or Limits()
    latencies = latencies or Latencies()
    nodes = _Nodes(
        toolbox, planner, generator, limits, approve, latencies, check_mend(mend), retain
    )
    graph = StateGraph(
        RunState, context_schema=RunContext, input_schema=AskInput, output_schema=AskOutput
    )
    graph.add_node("plan", TracedNode(nodes.plan, planned=False))
    graph.add_node("approve", TracedNode(nodes.approve, planned=True))
    graph.add_node("execute", TracedNode(nodes.execute, planned=True))
    graph.add_node("revise", TracedNode(nodes.revise, planned=True))
    graph.add_node("retain", TracedNode(nodes.retained, planned=True))
    graph.add_node("generate", TracedNode(nodes.generate, planned=True))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", _after_plan, ["approve", "execute"])
    graph.add_conditional_edges("approve", _after_approve, ["approve", "execute", "generate"])
    graph.add_conditional_edges("execute", nodes.after_execute, ["revise", "retain", "generate"])
    graph.add_conditional_edges("revise", _after_revise, ["approve", "execute", "generate"])
    graph.add_edge("retain", "generate")
    graph.add_edge("generate", END)
    compiled = graph.compile(checkpointer=strict(checkpointer), name=traces.NAME)
    # A synchronous run gives every step a thread; a step that waits holds its own.
    config: RunnableConfig = {
        "max_concurrency": nodes.limits.steps + _SPARE_THREADS,
        "tags": [traces.TAG],
        "callbacks": [traces.RUNS],
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
    """The nodes, each as the body of a blocking and of an awaiting call, and the branches."""

    toolbox: Toolbox
    planner: Planner
    generator: Generator
    limits: Limits
    approving: Approve
    latencies: Latencies
    mend: Mend
    retain: Callable[[Mapping[str, Any]], object] | None

    def plan(self, state: RunState) -> Body[dict[str, Any]]:
        # The state's budget is that of the thread's last run.
        state = {**state, "budget": {}}
        context, request, limits = run_context(), self._request(state), self._limits(state)
        check_tools(context.limits, request.toolbox)
        planner, measured = context.planner or self.planner, self.latencies.seconds()
        plan, planning = yield from plan_within(planner, request, limits, measured)
        # A resumed run mends as it began to.
        mend = context.mend or self.mend
        planning |= {} if mend == "off" else {"mend": mend}
        why = self._why_approve(plan, Price.from_json(planning["price"]), request.toolbox)
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        return {
            "plan": str(plan),
            "planning": planning,
            "run_id": str(uuid.uuid4()),
            "budget": limits.budget(),
            "approval": {"why": why} if why else {"plan": str(plan)},
        }

    def approve(self, state: RunState) -> Body[dict[str, Any]]:
        request, limits = self._request(state), self._limits(state)
        whole = parse_plan(state["plan"])
        finished = _finished(state, whole)
        question = approval.card(
            state["plan"], state["planning"], state["approval"], request, len(finished)
        )
        reply = yield Work(lambda: interrupt(question), lambda: _interrupt(question))
        decision, text = approval.read_reply(reply)
        planning = {**state["planning"], "approval": decision}
        if decision == "yes":
            return {"planning": planning, "approval": {"reply": decision, "plan": state["plan"]}}
        if decision == "no":
            skipped = [*finished, *approval.refused(whole)[len(finished) :]]
            return {"planning": planning, "approval": {"reply": decision}, "outcomes": skipped}
        fixed = whole.steps[: len(finished)]
        plan, wrong = approval.read_plan(
            text, lambda plan: _violations(plan, request, limits, finished, fixed)
        )
        if plan is None:
            # A new superstep gives the next question its own id: an earlier reply that is sent
            # again answers nothing.
            return {"approval": {"why": question["why"], **wrong}}
        planning |= {"price": self._price(plan, request, limits).to_json(), "left_out": []}
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        replied = {"reply": decision, "plan": str(plan)}
        return {"plan": str(plan), "planning": planning, "approval": replied}

    def execute(self, state: RunState) -> Body[dict[str, Any]]:
        context, request, limits = run_context(), self._request(state), self._limits(state)
        plan = parse_plan(str(state["plan"]))
        finished = _finished(state, plan)
        # A planner of another package, or an edit of the state, may have written it.
        for violation in _violations(plan, request, limits, finished):
            raise violation
        if why := self._unapproved(state, plan, request, limits):
            raise PlanError(
                f"Nobody has approved this plan. {why}",
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
            finished=finished,
            seconds=self._left(state, finished),
        )
        outcomes = yield Work(lambda: execution.run(get_config()), execution.arun)
        self.latencies.add(outcomes[len(finished) :])
        return {"outcomes": outcomes}

    def after_execute(self, state: RunState) -> str:
        """Return the node after the steps."""
        outcomes, planning = state["outcomes"], state["planning"]
        if "mended" not in planning:
            steps = self._limits(state).steps
            room = self._left(state, outcomes) > 0 and len(outcomes) < steps
            again = room and broken(planning.get("mend", "off"), _outcomes(state))
            return "revise" if again else "generate"
        return "retain" if self.retain and self._lesson(state) else "generate"

    def revise(self, state: RunState) -> Body[dict[str, Any]]:
        request, plan, outcomes = self._request(state), parse_plan(state["plan"]), _outcomes(state)
        limits, rest = self._limits(state), rest_request(request, plan, outcomes)
        spent = [Step(o.tool) for o in outcomes for _ in range(o.attempts - (o.status == "done"))]
        rest, _ = within(
            rest, limits, lambda plan: _beyond(plan, spent, request.toolbox, limits), len(spent)
        )
        planner, left = run_context().planner or self.planner, self._left(state, state["outcomes"])
        result = yield from plan_in_time(planner, rest, left)
        longer = mended(request, rest, plan, outcomes, result)
        planning = {**state["planning"], "mended": {**result.to_json(), "plan": state["plan"]}}
        if longer is None:
            return {"planning": planning}
        longer, left_out = trimmed(
            longer, lambda plan: _excess(plan, request.toolbox, limits, state["outcomes"])
        )
        planning["left_out"] = [*planning["left_out"], *left_out]
        if len(longer.steps) <= len(plan.steps):
            return {"planning": planning}
        planning["price"] = self._price(longer, request, limits).to_json()
        added = Plan(longer.steps[len(plan.steps) :])
        why = self._why_approve(added, Price.from_json(planning["price"]), request.toolbox)
        # What a person approved stands; the steps behind it need no approval, or wait for theirs.
        approved = {**state["approval"], "plan": str(longer)}
        get_stream_writer()({"event": "plan", "plan": str(longer), "planner": planning})
        return {
            "plan": str(longer),
            "planning": planning,
            "approval": {"why": why} if why else approved,
        }

    def retained(self, state: RunState) -> Body[dict[str, Any]]:
        record: dict[str, Any] = {"query": state["question"], "plan": str(self._lesson(state))}
        record |= {name: value for name in ("context", "history") if (value := state.get(name))}
        try:
            yield Work(lambda: self.retain and self.retain(record))
            retained = ""
        except Exception as error:  # noqa: BLE001 - the answer does not depend on it
            retained = f"It was not retained: {told(error)}"
        summary = {**state["planning"]["mended"], "retained": retained or record["plan"]}
        return {"planning": {**state["planning"], "mended": summary}}

    def _lesson(self, state: RunState) -> Plan | None:
        before = len(parse_plan(state["planning"]["mended"]["plan"]).steps)
        return lesson(parse_plan(state["plan"]), _outcomes(state), before)

    def _why_approve(self, plan: Plan, price: Price, toolbox: Toolbox) -> str:
        policies = (self.approving, run_context().approve)
        whys = (approval.why_approve(policy, plan, price, toolbox) for policy in policies)
        return next(filter(None, whys), "")

    def _unapproved(self, state: RunState, plan: Plan, request: PlanRequest, limits: Limits) -> str:
        """Return why a plan that is to run should have waited for approval; empty if it may run.

        A price was judged when the plan was written: latencies are measured meanwhile.
        """
        judged = state.get("approval", {})
        if judged.get("plan") != state["plan"]:
            return self._why_approve(plan, self._price(plan, request, limits), request.toolbox)
        approved = "reply" in judged
        return "" if approved else approval.why_declared(plan, request.toolbox)

    def _price(self, plan: Plan, request: PlanRequest, limits: Limits) -> Price:
        attempts, measured = limits.retry.max_attempts, self.latencies.seconds()
        return plan.price(request.toolbox, attempts=attempts, measured=measured)

    def generate(self, state: RunState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        generator, left = self.generator, self._left(state, state["outcomes"])
        plan, outcomes = parse_plan(state["plan"]), _outcomes(state)
        reported = without_replaced(outcomes, len(_finished(state, plan)))
        toolbox = run_context().toolbox or self.toolbox
        request = GenerationRequest(
            question=state["question"],
            evidence=collect(plan, outcomes, toolbox),
            missing=[*state["planning"].get("left_out", ()), *shortfalls(reported, toolbox)],
            history=_value(state, "history", ()),
        )
        # Quotations take milliseconds, also after the deadline.
        bounded = not isinf(left) and not isinstance(generator, ExtractiveGenerator)
        try:
            seconds = max(left, 0.0) if bounded else None
            generation = yield from traces.generated(generator, request, seconds)
        except TimeoutError:
            if not bounded:
                raise
            generation = ExtractiveGenerator().generate(request)
        text, citations = generation.text, generation.citations
        if citations is None:
            text, citations = checked(text, request.evidence)
        answer = Answer(
            text=text,
            citations=list(citations),
            evidence=[item.to_json() for item in request.evidence],
            missing=list(request.missing),
            refused=_refused(plan, outcomes, citations),
            plan=state["plan"],
            planner=state["planning"],
            generator=generation.generator or generator.name,
            steps=state["outcomes"],
            usage={
                "planning_ms": _planning_ms(state),
                "execution_ms": round(_end(state["outcomes"]), 3),
                "generation_ms": since(started),
                "planner_tokens": state["planning"]["tokens"],
                "generator_tokens": dict(generation.tokens),
            },
            run_id=state["run_id"],
        ).to_json()
        usage = answer["usage"]
        get_stream_writer()(
            {"event": "answer", "text": text, "citations": list(citations), "usage": usage}
        )
        # The next question on this thread starts with a context and a history of its own.
        return {"answer": answer, "context": {}, "history": []}

    def _left(self, state: RunState, outcomes: Sequence[Mapping[str, Any]]) -> float:
        """Return the seconds before the deadline, given what planning and these steps took."""
        return self._limits(state).deadline - (_planning_ms(state) + _end(outcomes)) / 1000

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


def _violations(
    plan: Plan,
    request: PlanRequest,
    limits: Limits,
    finished: Sequence[Mapping[str, Any]],
    fixed: Sequence[Step] = (),
) -> Iterator[PlanError]:
    """Yield what is wrong with a plan whose first steps have these outcomes, and are ``fixed``."""
    yield from request.violations(plan)
    if excess := _excess(plan, request.toolbox, limits, finished):
        yield PlanError(f"The plan is beyond the budget: {excess}.", "Leave out steps.")
    if plan.steps[: len(fixed)] != tuple(fixed):
        yield PlanError(
            f"The first {len(fixed)} steps have run.", "Leave them as they are, in front."
        )


def _excess(
    plan: Plan, toolbox: Toolbox, limits: Limits, finished: Sequence[Mapping[str, Any]]
) -> str:
    """Return what is beyond the budget of a plan and of the retries that its steps had."""
    retries = [Step(o["tool"]) for o in finished for _ in range(1, o["attempts"])]
    return _beyond(plan, retries, toolbox, limits)


def _beyond(plan: Plan, spent: Sequence[Step], toolbox: Toolbox, limits: Limits) -> str:
    """Return what is beyond the budget of a plan and of calls that were made beside it."""
    return limits.excess(Plan((*plan.steps, *spent)).price(toolbox))


async def _interrupt(value: Any) -> Any:
    return interrupt(value)


def _after_plan(state: RunState) -> str:
    return "approve" if "why" in state.get("approval", {}) else "execute"


def _after_revise(state: RunState) -> str:
    if state["plan"] == state["planning"]["mended"]["plan"]:
        return "generate"
    return "approve" if "why" in state["approval"] else "execute"


def _after_approve(state: RunState) -> str:
    return {"no": "generate", None: "approve"}.get(state["approval"].get("reply"), "execute")


def _outcomes(state: RunState) -> list[Outcome]:
    return [Outcome.from_json(outcome) for outcome in state["outcomes"]]


def _finished(state: RunState, plan: Plan) -> list[dict[str, Any]]:
    """Return the outcomes of the steps that a replanning let stand."""
    if (summary := state["planning"].get("mended")) is None:
        return []
    before = parse_plan(summary["plan"]).steps
    # A state may have been edited since.
    same = plan.steps[: len(before)] == before
    return state["outcomes"][: len(before)] if same else []


def _refused(plan: Plan, outcomes: Sequence[Outcome], citations: Sequence[str]) -> bool:
    """Return ``True`` if the steps that were to answer found nothing."""
    needed = {ref.step for step in plan.steps for ref in step.references()}
    final = [o for number, o in enumerate(outcomes, 1) if number not in needed]
    looked = [outcome for outcome in final if outcome.tool != NO_EVIDENCE.name]
    return not citations and bool(looked) and all(o.status == "empty" for o in looked)


def _end(outcomes: Sequence[Mapping[str, Any]]) -> float:
    return max((step["started"] + step["milliseconds"] for step in outcomes), default=0.0)


def _planning_ms(state: RunState) -> float:
    planning = state["planning"]
    return float(planning["milliseconds"] + planning.get("mended", {}).get("milliseconds", 0.0))


def _value(state: RunState, name: str, empty: Any) -> Any:
    value = state.get(name)
    return empty if value is None else value
