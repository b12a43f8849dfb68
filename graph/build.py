"""The compiled graph: plan → execute → generate; or execute → revise → execute once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from casewright.errors import told
from casewright.graph import traces
from casewright.graph.answer import Answer
from casewright.graph.call import since
from casewright.graph.checkpoint_reading import strict
from casewright.graph.evidence import collect, shortfalls
from casewright.graph.execute import Execution
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import GenerationRequest, Generator, checked
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
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState, run_context
from casewright.graph.traces import TracedNode
from casewright.planner import Plan, Planner, PlanRequest, PlanResult, parse_plan
from casewright.planner.fallback import FallbackPlanner, in_place_of
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
    generator, limits = generator or ExtractiveGenerator(), limits or Limits()
    nodes = _Nodes(toolbox, planner, generator, limits, check_mend(mend), retain)
    graph = StateGraph(
        RunState, context_schema=RunContext, input_schema=AskInput, output_schema=AskOutput
    )
    graph.add_node("plan", TracedNode(nodes.plan, planned=False))
    graph.add_node("execute", TracedNode(nodes.execute, planned=True))
    graph.add_node("revise", TracedNode(nodes.revise, planned=True))
    graph.add_node("retain", TracedNode(nodes.retained, planned=True))
    graph.add_node("generate", TracedNode(nodes.generate, planned=True))
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "execute")
    graph.add_conditional_edges("execute", nodes.after_execute, ["revise", "retain", "generate"])
    graph.add_conditional_edges("revise", nodes.after_revise, ["execute", "generate"])
    graph.add_edge("retain", "generate")
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
    """The nodes, each as the body of a blocking and of an awaiting call, and the branches."""

    toolbox: Toolbox
    planner: Planner
    generator: Generator
    limits: Limits
    mend: Mend
    retain: Callable[[Mapping[str, Any]], object] | None

    def plan(self, state: RunState) -> Body[dict[str, Any]]:
        result = yield from self._planned(self._request(state), self._limits().deadline)
        # A resumed run mends as it began to.
        mend = run_context().mend or self.mend
        planning = {**_told(result), **({} if mend == "off" else {"mend": mend})}
        get_stream_writer()({"event": "plan", "plan": str(result.plan), "planner": planning})
        return {"plan": str(result.plan), "planning": planning, "run_id": str(uuid.uuid4())}

    def execute(self, state: RunState) -> Body[dict[str, Any]]:
        context, request = run_context(), self._request(state)
        plan = parse_plan(str(state["plan"]))
        finished = _finished(state, plan)
        # A planner of another package, or an edit of the state, may have written it.
        request.validate(plan)
        execution = Execution(
            plan=plan,
            toolbox=request.toolbox,
            question=request.question,
            context=request.context,
            caller=CallContext(
                run_id=state["run_id"], question=request.question, scope=dict(context.scope)
            ),
            limits=self._limits(),
            write=get_stream_writer(),
            finished=finished,
            seconds=self._left(state, finished),
        )
        return {"outcomes": (yield Work(lambda: execution.run(get_config()), execution.arun))}

    def after_execute(self, state: RunState) -> str:
        """Return the node after the steps."""
        outcomes, planning = state["outcomes"], state["planning"]
        if "mended" not in planning:
            room = self._left(state, outcomes) > 0 and len(outcomes) < self._limits().steps
            again = room and broken(planning.get("mend", "off"), _outcomes(state))
            return "revise" if again else "generate"
        return "retain" if self.retain and self._lesson(state) else "generate"

    def revise(self, state: RunState) -> Body[dict[str, Any]]:
        request, plan, outcomes = self._request(state), parse_plan(state["plan"]), _outcomes(state)
        rest = rest_request(request, plan, outcomes)
        result = yield from self._planned(rest, self._left(state, state["outcomes"]))
        longer = mended(request, rest, plan, outcomes, result)
        planning = {**state["planning"], "mended": {**_told(result), "plan": state["plan"]}}
        if longer is None:
            return {"planning": planning}
        get_stream_writer()({"event": "plan", "plan": str(longer), "planner": planning})
        return {"plan": str(longer), "planning": planning}

    def after_revise(self, state: RunState) -> str:
        """Return the node after a replanning."""
        added = state["plan"] != state["planning"]["mended"]["plan"]
        return "execute" if added else "generate"

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

    def _planned(self, request: PlanRequest, seconds: float) -> Body[PlanResult]:
        planner = run_context().planner or self.planner
        try:
            result: PlanResult = yield Work(
                lambda: planner.plan(request),
                lambda: planner.aplan(request),
                None if isinf(seconds) else seconds,
            )
            return result
        except TimeoutError:
            if isinf(seconds):
                raise
            other = replace(FallbackPlanner().plan(request), confidence=0.0)
            why = f"The run's deadline left {seconds:g} s for planning."
            return in_place_of(planner.name, why, other, milliseconds=seconds * 1000)

    def generate(self, state: RunState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        generator, left = self.generator, self._left(state, state["outcomes"])
        plan, outcomes = parse_plan(state["plan"]), _outcomes(state)
        told_of = without_replaced(outcomes, len(_finished(state, plan)))
        toolbox = run_context().toolbox or self.toolbox
        request = GenerationRequest(
            question=state["question"],
            evidence=collect(plan, outcomes, toolbox),
            missing=shortfalls(told_of),
            history=_value(state, "history", ()),
        )
        # Quotations take milliseconds, also after the deadline.
        bounded = not isinf(left) and not isinstance(generator, ExtractiveGenerator)
        try:
            generation = yield Work(
                lambda: generator.generate(request),
                lambda: generator.agenerate(request),
                max(left, 0.0) if bounded else None,
            )
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
        get_stream_writer()({"event": "answer", "text": text, "citations": list(citations)})
        # The next question on this thread starts with a context and a history of its own.
        return {"answer": answer, "context": {}, "history": []}

    def _limits(self) -> Limits:
        return self.limits.within(run_context().limits)

    def _left(self, state: RunState, outcomes: Sequence[Mapping[str, Any]]) -> float:
        """Return the seconds before the deadline, given what planning and these steps took."""
        return self._limits().deadline - (_planning_ms(state) + _end(outcomes)) / 1000

    def _request(self, state: RunState) -> PlanRequest:
        context = run_context()
        return PlanRequest(
            question=state.get("question", ""),
            toolbox=context.toolbox or self.toolbox,
            context=_value(state, "context", {}),
            history=_value(state, "history", ()),
            max_steps=self._limits().steps,
        )


def _told(result: PlanResult) -> dict[str, Any]:
    return {
        "name": result.planner,
        "attempts": result.attempts,
        "fallback": result.fallback,
        "milliseconds": round(result.milliseconds, 3),
        "tokens": dict(result.tokens),
        **result.doubt(),
    }


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


def _end(outcomes: Sequence[Mapping[str, Any]]) -> float:
    return max((step["started"] + step["milliseconds"] for step in outcomes), default=0.0)


def _planning_ms(state: RunState) -> float:
    planning = state["planning"]
    return float(planning["milliseconds"] + planning.get("mended", {}).get("milliseconds", 0.0))


def _value(state: RunState, name: str, empty: Any) -> Any:
    value = state.get(name)
    return empty if value is None else value
