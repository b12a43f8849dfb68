"""The step-by-step agent: a planner that is asked for one step at a time and sees its results.

It is the agent that REAPER compares a plan in one call with (Joshi et al. 2024, sections 1 and 4),
in its kindest form: its lines are written under the grammar, forced tokens take no model step, the
prompt's head is kept, and nothing that it has read or written in this conversation is read again.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.graph.call import Call, since
from casewright.graph.limits import Limits as CallLimits
from casewright.graph.outcome import Outcome
from casewright.graph.references import Known, MissingReferenceError
from casewright.planner import PlanRequest, PlanResult, Prompt, Step, parse_plan, render_prompt
from casewright.planner.fallback import FallbackPlanner, in_place_of
from casewright.planner.model_limits import MAX_TOKENS
from casewright.planner.named import NamedPlanner, PlannerParts
from casewright.planner.named_planners import local_model
from casewright.planner.plan_cases import similar_plans
from casewright.tools import NO_EVIDENCE, CallContext, Toolbox
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.decoding import Choose, Conversation, Decoder, Limits, Written
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.planner.request import Planner
    from casewright.stores import CaseStore

#: Stands before the question, behind the same head as for whole plans.
INSTRUCTION = """\
Do not write the whole plan but its next step only. You are then shown what the step found, and \
asked again. Write done where nothing more needs to be looked up."""
#: Results of a step that the agent is shown, and characters of them.
ROWS, CHARACTERS = 3, 400


class AgentPlanner:
    """Runs the step-by-step agent, tools and all, and returns its steps as a plan.

    The milliseconds of a result hold those of the tools: without what they found there is no plan.
    Its tokens are ``input``, with the prompt's head once; ``output``; ``model_steps``; and
    ``model_calls``, one for each step and one in which the agent says that it is done.

    Args:
        model: Writes the steps, under the grammar.
        scope: Who asks: tools that look into somebody's orders, say, need to know.
        fallback: Answers where the agent does not; without one, one tool is asked the question.
        plan_cases: Plan cases to show as examples.
        examples: How many of them; none by default, since they are whole plans.
        seconds: Deadline of a plan. The model's part of it is cut there; a tool that is running
            then is waited for, within its own time.
        tokens: Most tokens of a step.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        scope: Mapping[str, str] | None = None,
        fallback: Planner | None = None,
        plan_cases: CaseStore | None = None,
        examples: int = 0,
        seconds: float = 60.0,
        tokens: int = MAX_TOKENS,
    ) -> None:
        from casewright.planner.decoding import Decoder
        from casewright.planner.grammar import PlanGrammar

        self._model = model
        self._agent = StepAgent(model, PlanGrammar(model.grammar_tokenizer), Decoder(model))
        self._scope = dict(scope or {})
        self._fallback = fallback or FallbackPlanner()
        self._plan_cases = plan_cases
        self._examples = examples
        self._seconds = seconds
        self._tokens = tokens
        self.name = f"agent:{model.name}"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the agent's steps as a plan, or the fallback's; see ``Planner``."""
        from casewright.planner.decoding import Limits

        started = time.perf_counter()
        try:
            check_callable(request.toolbox)
            prompt = self._prompt(request)
            limits = Limits(self._tokens, started + self._seconds)
            run = self._agent.run(request, prompt, self._scope, limits=limits)
            plan = parse_plan(run.plan)
            request.validate(plan)
        except Exception as error:  # noqa: BLE001 - a planner never raises for its model
            other = self._fallback.plan(request)
            return in_place_of(self.name, error, other, milliseconds=since(started))
        tokens = {
            "input": len(prompt.head) + run.prompt_tokens,
            "output": run.written_tokens,
            "model_steps": run.model_steps,
            "model_calls": run.model_calls,
        }
        return PlanResult(plan, self.name, milliseconds=since(started), tokens=tokens)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same, in a thread of its own."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))

    def _prompt(self, request: PlanRequest) -> PromptTokens:
        found = []
        if self._plan_cases is not None:
            found = similar_plans(self._plan_cases, request, self._examples)
        return self._model.encode(agent_prompt(render_prompt(request, found)))


def check_callable(toolbox: Toolbox) -> None:
    """Raise ``InputError`` where no tool can be called: an agent would see nothing but errors.

    Single tools may be for planning only; the agent is told so when it calls them.
    """
    own = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    if own and all(tool.run is None and tool.run_async is None for tool in own):
        raise InputError(
            "The step-by-step agent calls tools, and of this toolbox none can be called: they were "
            "declared for planning only. Measure the agent with a domain's own tools."
        )


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One conversation.

    Attributes:
        plan: The steps that were written, one a line.
        outcomes: How they ended.
        model_calls: How often the model was asked.
        model_steps: Calls of the network that a token was chosen from.
        prompt_tokens: Tokens that were read behind the head, not counting what it wrote itself
            where that was known already.
        written_tokens: Tokens that it wrote.
        model_ms: Milliseconds without those of the tools.
        tools_ms: Milliseconds of the tools.
    """

    plan: str
    outcomes: Sequence[Outcome]
    model_calls: int
    model_steps: int
    prompt_tokens: int
    written_tokens: int
    model_ms: float
    tools_ms: float


def agent_prompt(prompt: Prompt) -> Prompt:
    """Return the prompt for a whole plan as that of the agent; its head is the same."""
    return Prompt(prompt.head, f"{INSTRUCTION}\n\n{prompt.tail}")


class StepAgent:
    """Asks a model for one step, calls the tool, shows what it found, and asks again.

    Args:
        model: Writes the steps.
        grammar: Of its lines.
        decoder: Keeps the prompt's head.
        stateless: Whether every call reads everything behind the head anew, as an agent must
            that talks to a service which keeps no conversation.
    """

    def __init__(
        self,
        model: LanguageModel,
        grammar: PlanGrammar,
        decoder: Decoder,
        *,
        stateless: bool = False,
    ) -> None:
        self._model = model
        self._grammar = grammar
        self._decoder = decoder
        self._stateless = stateless

    def run(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        scope: Mapping[str, str],
        choices: Sequence[Choose] | None = None,
        limits: Limits | None = None,
    ) -> AgentRun:
        """Go on until the model writes that it is done.

        Args:
            request: What is planned for; its tools are called.
            prompt: See ``agent_prompt``.
            scope: Who asks.
            choices: How tokens are chosen in each call; greedily by default.
            limits: Tokens of each line, and the deadline, which is looked at while the model reads
                and writes.

        Raises:
            DecodingError: A limit was met, or the conversation is longer than the model reads.
        """
        from casewright.planner.decoding import greedy
        from casewright.planner.grammar import DONE

        choosing = iter(choices) if choices is not None else repeat(greedy)
        started, tools_ms = time.perf_counter(), 0.0
        run_id = str(uuid.uuid4())
        lines: list[str] = []
        outcomes: dict[int, Outcome] = {}
        calls: list[Written] = []
        read, shown = 0, list(prompt.tail)
        with ExitStack() as stack:
            conversation: Conversation | None = None
            while True:
                if conversation is None or self._stateless:
                    stack.close()
                    conversation = stack.enter_context(
                        self._decoder.conversation(prompt.head, limits)
                    )
                conversation.feed(shown)
                read += len(shown)
                earlier = [outcome.tool for outcome in outcomes.values()]
                matcher = self._grammar.next_step(request, earlier)
                written = conversation.write(matcher, limits=limits, choose=next(choosing))
                calls.append(written)
                line = self._model.decode(written.tokens)
                if line == DONE:
                    break
                lines.append(line)
                step = parse_plan("\n".join(lines)).steps[-1]
                outcome = call_step(step, request, outcomes, scope, run_id)
                tools_ms += outcome.milliseconds
                outcomes[len(lines)] = outcome
                observed = self._model.encode_plan(told(outcome))
                # A new conversation begins with all that was said in this one.
                before = [*shown, *written.tokens] if self._stateless else []
                shown = [*before, *observed]
        return AgentRun(
            plan="\n".join(lines),
            outcomes=list(outcomes.values()),
            model_calls=len(calls),
            model_steps=sum(call.model_steps for call in calls),
            prompt_tokens=read,
            written_tokens=sum(len(call.tokens) for call in calls),
            model_ms=since(started) - tools_ms,
            tools_ms=tools_ms,
        )


def call_step(
    step: Step,
    request: PlanRequest,
    outcomes: Mapping[int, Outcome],
    scope: Mapping[str, str],
    run_id: str = "",
) -> Outcome:
    """Call the tool of the step after these, as the graph's executor does."""
    name = f"s{len(outcomes) + 1}"
    try:
        arguments = Known(request.question, request.context, outcomes).arguments(step)
    except MissingReferenceError as missing:
        return Outcome(name, step.tool, "skipped", error=str(missing))
    tool = request.toolbox[step.tool]
    context = CallContext(run_id, name, f"{run_id}:{name}", request.question, dict(scope))
    call = Call(tool, arguments, context, CallLimits())
    started = time.perf_counter()
    call.run()
    return call.outcome(name, started=started, began=started)


def told(outcome: Outcome) -> str:
    """Return what the agent is shown of a step: its first results, cut."""
    found: Any = list(outcome.rows[:ROWS]) or outcome.error or "nothing was found"
    text = json.dumps(found, ensure_ascii=False)[:CHARACTERS]
    return f"\nResults of {outcome.step}: {text}\nNext step:\n"


def _named(parts: PlannerParts) -> AgentPlanner:
    from casewright.planner import CasePlanner

    return AgentPlanner(
        local_model(parts.name, parts.settings),
        scope=parts.scope,
        fallback=CasePlanner(parts.plan_cases, parts.reader),
        plan_cases=parts.plan_cases,
        examples=parts.settings.examples or 0,
    )


#: What the entry point of the planner ``agent`` names.
AGENT = NamedPlanner(
    _named,
    "local:FOLDER",
    takes=frozenset({"adapter", "device", "dtype", "examples"}),
    reads=True,
    shared=False,
    model=local_model,
)
