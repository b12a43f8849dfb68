"""The compiled graph: plan → execute → generate, with approve, revise and retain if needed."""

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

from casewright.errors import PlanError, one_line
from casewright.graph import approval, traces
from casewright.graph.answer import Answer
from casewright.graph.approval import Approve
from casewright.graph.call import elapsed_ms
from casewright.graph.checkpoint_reading import restrict_types
from casewright.graph.evidence import collect_evidence, missing_texts
from casewright.graph.execute import Execution
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import GenerationRequest, Generator, checked_citations
from casewright.graph.latencies import Latencies
from casewright.graph.limits import Limits
from casewright.graph.mend import (
    Mend,
    check_mend,
    extended_plan,
    learned_plan,
    outcomes_to_mend,
    replan_request,
    without_replaced_steps,
)
from casewright.graph.outcome import Outcome
from casewright.graph.planning import budget_request, check_tools, plan_in_time, plan_within
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState, run_context
from casewright.graph.traces import TracedNode
from casewright.planner import Plan, Planner, PlanRequest, Step, parse_plan
from casewright.planner.budget import trimmed
from casewright.planner.price import Price
from casewright.tools import CallContext, Toolbox
from casewright.tools.body import Body, Work
from casewright.tools.spec import NO_EVIDENCE

Graph = CompiledStateGraph[RunState, RunContext, AskInput, AskOutput]
#: Threads that a synchronous run needs besides one per step: the node's and LangGraph's threads.
_OTHER_THREADS = 4


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

    The graph's input is ``AskInput``; the output is ``AskOutput``, which ``Answer.from_state``
    reads. If tools need to know the user, give ``context=RunContext(…)`` too. Events of the stream
    mode ``custom`` are ``plan``, ``step_started``, ``step_report``, ``step_ended`` and ``answer``.

    Args:
        generator: Writes the answer; by default, the evidence is quoted.
        checkpointer: With a checkpointer, the graph runs with ``durability="sync"``. If a parent
            graph has the checkpointer instead, run the parent with this durability too. Only plain
            values are read from checkpoints; see ``restrict_types``.
        approve: The rule for plans that a person must approve before any tool runs. A plan with a
            tool that declares ``approval`` always needs approval; with a mapping such as
            ``{"calls": 3, "cost": 0.5}``, also a plan above this price; with ``"always"``, every
            plan. LangGraph's interrupt asks the person. Resume the run with ``"yes"``, ``"no"`` or
            another plan's text; if that plan is invalid, a new interrupt has the reason.
        latencies: Tools' measured latencies, for plans' prices; by default, of this graph's calls.
        mend: With ``"failure"``, the planner replans the remaining steps, at most once in a run, if
            steps failed; with ``"empty"``, also if steps found nothing. No step runs twice.
        retain: Called after a replanned run in which no tool failed. The argument is an annotated
            query: ``query``, ``plan`` (the steps with results), and ``context`` and ``history`` if
            any. If the process dies, ``retain`` may be called again for the same run.

    Raises:
        InputError: ``approve`` or ``mend`` is invalid; or, when the graph is invoked, the question,
            context, history or run context is invalid.
        PlanError: When the graph is invoked, the planner's plan, or the plan in an edited state, is
            not valid for the request; then no step runs.
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
    graph.add_node("plan", TracedNode(nodes.plan, has_plan=False))
    graph.add_node("approve", TracedNode(nodes.approve, has_plan=True))
    graph.add_node("execute", TracedNode(nodes.execute, has_plan=True))
    graph.add_node("revise", TracedNode(nodes.revise, has_plan=True))
    graph.add_node("retain", TracedNode(nodes.retain_plan, has_plan=True))
    graph.add_node("generate", TracedNode(nodes.generate, has_plan=True))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", _after_plan, ["approve", "execute"])
    graph.add_conditional_edges("approve", _after_approve, ["approve", "execute", "generate"])
    graph.add_conditional_edges("execute", nodes.after_execute, ["revise", "retain", "generate"])
    graph.add_conditional_edges("revise", _after_revise, ["approve", "execute", "generate"])
    graph.add_edge("retain", "generate")
    graph.add_edge("generate", END)
    compiled = graph.compile(checkpointer=restrict_types(checkpointer), name=traces.NAME)
    # In a synchronous run, every step occupies a thread even while it waits for its inputs.
    config: RunnableConfig = {
        "max_concurrency": nodes.limits.steps + _OTHER_THREADS,
        "tags": [traces.TAG],
        "callbacks": [traces.RUN_SPANS],
    }
    if checkpointer is not None:
        # Otherwise, a run that is killed before its plan is saved would resume with another plan.
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync"}
    return compiled.with_config(config)


def nested_config(outer: RunnableConfig) -> RunnableConfig:
    """Return the config for a run of the graph inside the run with the config ``outer``.

    By default LangGraph saves a node's result while the next node runs. If the run is killed then,
    the resumed run repeats tool calls. This config makes LangGraph save the result first, unless
    the outer run sets ``durability``. ``max_concurrency`` is left out: it would limit the steps.
    """
    config: Any = {name: value for name, value in outer.items() if name != "max_concurrency"}
    configurable = outer.get("configurable", {})
    if configurable.get(CONFIG_KEY_CHECKPOINTER):
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync", **configurable}
    return cast("RunnableConfig", config)


@dataclass(frozen=True)
class _Nodes:
    """The graph's nodes, each a method that returns a ``Body``, and the route after ``execute``."""

    toolbox: Toolbox
    planner: Planner
    generator: Generator
    limits: Limits
    approval_rule: Approve
    latencies: Latencies
    mend: Mend
    retain: Callable[[Mapping[str, Any]], object] | None

    def plan(self, state: RunState) -> Body[dict[str, Any]]:
        # The state may hold the budget of the previous run on this thread.
        state = {**state, "budget": {}}
        context, request, limits = run_context(), self._request(state), self._limits(state)
        check_tools(context.limits, request.toolbox)
        planner, latencies = context.planner or self.planner, self.latencies.seconds()
        plan, planning = yield from plan_within(planner, request, limits, latencies)
        # The state holds the mode of replanning, so that a resumed run keeps it.
        mend = context.mend or self.mend
        planning |= {"mend": mend} if mend != "off" else {}
        reason = self._approval_reason(plan, Price.from_json(planning["price"]), request.toolbox)
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        return {
            "plan": str(plan),
            "planning": planning,
            "run_id": str(uuid.uuid4()),
            "budget": limits.budget(),
            # ``why`` asks for approval; ``plan`` is the plan that may run.
            "approval": {"why": reason} if reason else {"plan": str(plan)},
        }

    def approve(self, state: RunState) -> Body[dict[str, Any]]:
        request, limits = self._request(state), self._limits(state)
        proposed = parse_plan(state["plan"])
        finished = _finished_outcomes(state, proposed)
        pause_value = approval.interrupt_value(
            state["plan"], state["planning"], state["approval"], request, len(finished)
        )
        reply = yield Work(lambda: interrupt(pause_value), lambda: _ainterrupt(pause_value))
        decision, text = approval.read_reply(reply)
        planning = {**state["planning"], "approval": decision}
        if decision == "yes":
            return {"planning": planning, "approval": {"reply": decision, "plan": state["plan"]}}
        if decision == "no":
            all_outcomes = [*finished, *approval.refused_outcomes(proposed)[len(finished) :]]
            return {"planning": planning, "approval": {"reply": decision}, "outcomes": all_outcomes}
        fixed_steps = proposed.steps[: len(finished)]
        plan, edit_fields = approval.read_edited_plan(
            text, lambda plan: _violations(plan, request, limits, finished, fixed_steps)
        )
        if plan is None:
            # The node runs again, so that the next interrupt has another id. A reply that is sent
            # twice then does not answer the next interrupt.
            return {"approval": {"why": pause_value["why"], **edit_fields}}
        planning |= {"price": self._price(plan, request, limits).to_json(), "left_out": []}
        get_stream_writer()({"event": "plan", "plan": str(plan), "planner": planning})
        approval_record = {"reply": decision, "plan": str(plan)}
        return {"plan": str(plan), "planning": planning, "approval": approval_record}

    def execute(self, state: RunState) -> Body[dict[str, Any]]:
        context, request, limits = run_context(), self._request(state), self._limits(state)
        plan = parse_plan(str(state["plan"]))
        finished = _finished_outcomes(state, plan)
        # The planner may be a third party's, and the state may be edited, so the plan is checked.
        for violation in _violations(plan, request, limits, finished):
            raise violation
        if reason := self._objection(state, plan, request, limits):
            raise PlanError(
                f"The plan was not approved. {reason}",
                "Change plans in the node approve, not after it.",
            )
        execution = Execution(
            plan=plan,
            toolbox=request.toolbox,
            question=request.question,
            context=request.context,
            call_context=CallContext(
                run_id=state["run_id"], question=request.question, scope=dict(context.scope)
            ),
            limits=limits,
            write=get_stream_writer(),
            finished=finished,
            seconds=self._seconds_left(state, finished),
        )
        outcomes = yield Work(lambda: execution.run(get_config()), execution.arun)
        self.latencies.add(outcomes[len(finished) :])
        return {"outcomes": outcomes}

    def after_execute(self, state: RunState) -> str:
        """Return the name of the node that follows ``execute``."""
        outcomes, planning = state["outcomes"], state["planning"]
        if "mended" not in planning:
            steps = self._limits(state).steps
            may_replan = self._seconds_left(state, outcomes) > 0 and len(outcomes) < steps
            replan = may_replan and outcomes_to_mend(planning.get("mend", "off"), _outcomes(state))
            return "revise" if replan else "generate"
        return "retain" if self.retain and self._learned_plan(state) else "generate"

    def revise(self, state: RunState) -> Body[dict[str, Any]]:
        request, plan, outcomes = self._request(state), parse_plan(state["plan"]), _outcomes(state)
        limits, remaining = self._limits(state), replan_request(request, plan, outcomes)
        # The budget also counts calls that the new plan lacks: retries, and steps without results.
        calls = [Step(o.tool) for o in outcomes for _ in range(o.attempts - (o.status == "done"))]
        remaining, _ = budget_request(
            remaining, limits, lambda new: _excess(new, calls, request.toolbox, limits), len(calls)
        )
        planner = run_context().planner or self.planner
        seconds = self._seconds_left(state, state["outcomes"])
        result = yield from plan_in_time(planner, remaining, seconds)
        new_plan = extended_plan(request, remaining, plan, outcomes, result)
        # The record ``mended`` has the plan from before the replanning.
        planning = {**state["planning"], "mended": {**result.to_json(), "plan": state["plan"]}}
        if new_plan is None:
            return {"planning": planning}
        new_plan, left_out = trimmed(
            new_plan, lambda plan: _run_excess(plan, request.toolbox, limits, state["outcomes"])
        )
        planning["left_out"] = [*planning["left_out"], *left_out]
        if len(new_plan.steps) <= len(plan.steps):
            return {"planning": planning}
        planning["price"] = self._price(new_plan, request, limits).to_json()
        added = Plan(new_plan.steps[len(plan.steps) :])
        reason = self._approval_reason(added, Price.from_json(planning["price"]), request.toolbox)
        # The finished steps keep their approval. If the added steps need approval, the run asks.
        approval_record = {**state["approval"], "plan": str(new_plan)}
        get_stream_writer()({"event": "plan", "plan": str(new_plan), "planner": planning})
        return {
            "plan": str(new_plan),
            "planning": planning,
            "approval": {"why": reason} if reason else approval_record,
        }

    def retain_plan(self, state: RunState) -> Body[dict[str, Any]]:
        plan = str(self._learned_plan(state))
        record: dict[str, Any] = {"query": state["question"], "plan": plan}
        record |= {name: value for name in ("context", "history") if (value := state.get(name))}
        try:
            yield Work(lambda: self.retain and self.retain(record))
            retained_text = plan
        except Exception as error:  # noqa: BLE001 - the answer stays the same
            retained_text = f"The plan was not retained: {one_line(error)}"
        mended = {**state["planning"]["mended"], "retained": retained_text}
        return {"planning": {**state["planning"], "mended": mended}}

    def _learned_plan(self, state: RunState) -> Plan | None:
        first_plan = parse_plan(state["planning"]["mended"]["plan"])
        return learned_plan(parse_plan(state["plan"]), _outcomes(state), len(first_plan.steps))

    def _approval_reason(self, plan: Plan, price: Price, toolbox: Toolbox) -> str:
        rules = (self.approval_rule, run_context().approve)
        reasons = (approval.approval_reason(rule, plan, price, toolbox) for rule in rules)
        return next(filter(None, reasons), "")

    def _objection(self, state: RunState, plan: Plan, request: PlanRequest, limits: Limits) -> str:
        """Return the reason why a plan must not run without approval; empty if it may run.

        The price of a plan that needed no approval is not checked again, since later measurements
        of latencies change it.
        """
        record = state.get("approval", {})
        if record.get("plan") != state["plan"]:
            return self._approval_reason(plan, self._price(plan, request, limits), request.toolbox)
        return "" if "reply" in record else approval.declared_reason(plan, request.toolbox)

    def _price(self, plan: Plan, request: PlanRequest, limits: Limits) -> Price:
        attempts, latencies = limits.retry.max_attempts, self.latencies.seconds()
        return plan.price(request.toolbox, attempts=attempts, measured=latencies)

    def generate(self, state: RunState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        generator, seconds_left = self.generator, self._seconds_left(state, state["outcomes"])
        plan, outcomes = parse_plan(state["plan"]), _outcomes(state)
        unreplaced = without_replaced_steps(outcomes, len(_finished_outcomes(state, plan)))
        toolbox = run_context().toolbox or self.toolbox
        request = GenerationRequest(
            question=state["question"],
            evidence=collect_evidence(plan, outcomes, toolbox),
            missing=[*state["planning"].get("left_out", ()), *missing_texts(unreplaced, toolbox)],
            history=_state_value(state, "history", ()),
        )
        # The deadline does not apply to quoting the evidence, which takes milliseconds.
        has_deadline = not isinf(seconds_left) and not isinstance(generator, ExtractiveGenerator)
        try:
            seconds = max(seconds_left, 0.0) if has_deadline else None
            generation = yield from traces.traced_generation(generator, request, seconds)
        except TimeoutError:
            if not has_deadline:
                raise
            generation = ExtractiveGenerator().generate(request)
        text, citations = generation.text, generation.citations
        if citations is None:
            text, citations = checked_citations(text, request.evidence)
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
                "execution_ms": round(_execution_ms(state["outcomes"]), 3),
                "generation_ms": elapsed_ms(started),
                "planner_tokens": state["planning"]["tokens"],
                "generator_tokens": dict(generation.tokens),
            },
            run_id=state["run_id"],
        ).to_json()
        usage = answer["usage"]
        get_stream_writer()(
            {"event": "answer", "text": text, "citations": list(citations), "usage": usage}
        )
        # The next question on this thread starts with its own context and history.
        return {"answer": answer, "context": {}, "history": []}

    def _seconds_left(self, state: RunState, outcomes: Sequence[Mapping[str, Any]]) -> float:
        """Return the seconds until the deadline, after planning and the steps of ``outcomes``."""
        return self._limits(state).deadline - (_planning_ms(state) + _execution_ms(outcomes)) / 1000

    def _request(self, state: RunState) -> PlanRequest:
        context = run_context()
        return PlanRequest(
            question=state.get("question", ""),
            toolbox=context.toolbox or self.toolbox,
            context=_state_value(state, "context", {}),
            history=_state_value(state, "history", ()),
            max_steps=self._limits(state).steps,
        )

    def _limits(self, state: RunState) -> Limits:
        # The state holds the budget, so that a resumed run keeps it.
        return self.limits.within(run_context().limits).within(state.get("budget"))


def _violations(
    plan: Plan,
    request: PlanRequest,
    limits: Limits,
    finished: Sequence[Mapping[str, Any]],
    fixed_steps: Sequence[Step] = (),
) -> Iterator[PlanError]:
    """Yield the violations of a plan; its first steps must be ``fixed_steps``, which have run."""
    yield from request.violations(plan)
    if excess := _run_excess(plan, request.toolbox, limits, finished):
        yield PlanError(f"The plan exceeds the budget: {excess}.", "Leave out steps.")
    if plan.steps[: len(fixed_steps)] != tuple(fixed_steps):
        yield PlanError(
            f"The first {len(fixed_steps)} steps have run.", "Keep them unchanged at the beginning."
        )


def _run_excess(
    plan: Plan, toolbox: Toolbox, limits: Limits, finished: Sequence[Mapping[str, Any]]
) -> str:
    """Return the limit that a plan and the retries so far exceed, in words; empty if none."""
    retries = [Step(step["tool"]) for step in finished for _ in range(1, step["attempts"])]
    return _excess(plan, retries, toolbox, limits)


def _excess(plan: Plan, extra_calls: Sequence[Step], toolbox: Toolbox, limits: Limits) -> str:
    """Return the limit that a plan and extra calls together exceed, in words; empty if none."""
    return limits.excess(Plan((*plan.steps, *extra_calls)).price(toolbox))


async def _ainterrupt(value: Any) -> Any:
    return interrupt(value)


def _after_plan(state: RunState) -> str:
    return "approve" if "why" in state.get("approval", {}) else "execute"


def _after_revise(state: RunState) -> str:
    if state["plan"] == state["planning"]["mended"]["plan"]:
        return "generate"
    return "approve" if "why" in state["approval"] else "execute"


def _after_approve(state: RunState) -> str:
    # Without a reply, the edited plan was invalid, so the node runs again.
    return {"no": "generate", None: "approve"}.get(state["approval"].get("reply"), "execute")


def _outcomes(state: RunState) -> list[Outcome]:
    return [Outcome.from_json(outcome) for outcome in state["outcomes"]]


def _finished_outcomes(state: RunState, plan: Plan) -> list[dict[str, Any]]:
    """Return the outcomes of the steps that ran before the plan was extended, if any."""
    if (mended := state["planning"].get("mended")) is None:
        return []
    first_steps = parse_plan(mended["plan"]).steps
    # An edit of the state may have changed these steps.
    is_unchanged = plan.steps[: len(first_steps)] == first_steps
    return state["outcomes"][: len(first_steps)] if is_unchanged else []


def _refused(plan: Plan, outcomes: Sequence[Outcome], citations: Sequence[str]) -> bool:
    """Return True if nothing is cited, and all look-ups to which no step refers found nothing."""
    referenced = {ref.step for step in plan.steps for ref in step.references()}
    final = [outcome for number, outcome in enumerate(outcomes, 1) if number not in referenced]
    look_ups = [outcome for outcome in final if outcome.tool != NO_EVIDENCE.name]
    return not citations and bool(look_ups) and all(step.status == "empty" for step in look_ups)


def _execution_ms(outcomes: Sequence[Mapping[str, Any]]) -> float:
    return max((step["started"] + step["milliseconds"] for step in outcomes), default=0.0)


def _planning_ms(state: RunState) -> float:
    planning = state["planning"]
    return float(planning["milliseconds"] + planning.get("mended", {}).get("milliseconds", 0.0))


def _state_value(state: RunState, name: str, default: Any) -> Any:
    value = state.get(name)
    return default if value is None else value
