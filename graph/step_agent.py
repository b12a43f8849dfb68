"""The step-by-step agent: a planner that writes a step, sees its results, and writes the next.

REAPER compares planning in one model call with such an agent (Joshi et al. 2024, sections 1 and 4).
To be fair to the agent, this implementation makes it fast: decoding is constrained, tokens that the
grammar forces take no model step, and a KV cache holds the prompt prefix and the conversation.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.graph.call import Call, elapsed_ms
from casewright.graph.limits import Limits
from casewright.graph.outcome import MissingReferenceError, Outcome, StepInputs
from casewright.planner import PlanRequest, PlanResult, Prompt, Step, parse_plan, render_prompt
from casewright.planner.fallback import FallbackPlanner, fallback_result
from casewright.planner.model_limits import MAX_TOKENS
from casewright.planner.named import NamedPlanner, PlannerParts
from casewright.planner.named_planners import local_model
from casewright.planner.plan_cases import similar_plans
from casewright.tools import NO_EVIDENCE, CallContext, Toolbox
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.decoding import (
        Choose,
        Decoder,
        DecodingLimits,
        DecodingSession,
        Written,
    )
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.planner.request import Planner
    from casewright.stores import CaseStore

#: Instruction before the question; the prompt prefix is the same as for whole plans.
INSTRUCTION = """\
Do not write the whole plan but its next step only. You are then shown what the step found, and \
asked again. Write done where nothing more needs to be looked up."""
#: The text before a step, and the text before a thought if the agent writes thoughts.
NEXT_STEP, BEFORE_THOUGHT = "Next step:\n", "Thought: "
#: Maximum number of a step's results that the agent sees, and of the characters of their JSON.
MAX_ROWS, MAX_CHARACTERS = 3, 400


class AgentPlanner:
    """A planner that lets the step-by-step agent call the tools; the plan has the agent's steps.

    The milliseconds of a ``PlanResult`` include the time of the tools, since the agent reads what
    the tools return. The token counts are ``input`` (with the prompt prefix once), ``output``,
    ``model_steps`` and ``model_calls``; see ``AgentRun``.

    Args:
        model: Writes the steps by constrained decoding.
        scope: The identity of the user, which the tools get.
        fallback: Makes the plan if the agent fails; ``FallbackPlanner`` by default.
        plan_cases: The store of plan cases for the prompt.
        examples: Number of plan cases in the prompt; 0 by default: they show plans, not steps.
        seconds: Time limit for decoding a plan; tool calls have time limits of their own.
        tokens: Maximum number of tokens of a step.
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
        """Return the agent's steps as a plan, or the fallback plan; see ``Planner``."""
        from casewright.planner.decoding import DecodingLimits

        started = time.perf_counter()
        try:
            # The agent calls tools while it plans, before a person could approve the calls.
            approval_tools = [tool.name for tool in request.toolbox if tool.approval]
            request = replace(request, toolbox=request.toolbox.without(*approval_tools))
            _check_callable(request.toolbox)
            examples = similar_plans(self._plan_cases, request, self._examples)
            prompt = self._model.encode(agent_prompt(render_prompt(request, examples)))
            limits = DecodingLimits(self._tokens, started + self._seconds)
            run = self._agent.run(request, prompt, self._scope, limits=limits)
            plan = parse_plan(run.plan)
            request.validate(plan)
        except Exception as error:  # noqa: BLE001 - a model's error must not leave the planner
            fallback = self._fallback.plan(request)
            return fallback_result(self.name, error, fallback, milliseconds=elapsed_ms(started))
        tokens = {
            "input": len(prompt.head) + run.prompt_tokens,
            "output": run.written_tokens,
            "model_steps": run.model_steps,
            "model_calls": run.model_calls,
        }
        return PlanResult(plan, self.name, milliseconds=elapsed_ms(started), tokens=tokens)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, computed in a daemon thread."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))


def _check_callable(toolbox: Toolbox) -> None:
    """Raise ``InputError`` if no tool can be called: the agent would see only errors."""
    tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    if tools and all(tool.run is None and tool.run_async is None for tool in tools):
        raise InputError(
            "The step-by-step agent needs tools that can be called, but those of this toolbox were "
            "declared for planning only. Measure the agent with a domain's own tools."
        )


@dataclass(frozen=True, slots=True)
class AgentRun:
    """Result of the agent: its plan, and the outcomes of the steps.

    Attributes:
        model_calls: Number of model calls: one for each step with its thought, one for ``done``.
        model_steps: Number of forward passes from which a token was chosen.
        prompt_tokens: Number of tokens that the model read, except the prefix and cached tokens.
        model_ms: Milliseconds of the model, without the tools.
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
    """Return the agent's prompt: a whole-plan prompt, with ``INSTRUCTION`` before its ``tail``."""
    return Prompt(prompt.head, f"{INSTRUCTION}\n\n{prompt.tail}")


@dataclass(frozen=True)
class StepAgent:
    """An agent in which a model writes a step, gets the results of the step's tool, and repeats.

    A ``stateless`` agent reads all tokens after the prompt prefix again in each model call, as in a
    service that caches no conversation. With ``thoughts``, the model writes a line of free text
    before each step (ReAct, Yao et al. 2023).
    """

    model: LanguageModel
    grammar: PlanGrammar
    decoder: Decoder
    stateless: bool = False
    thoughts: bool = False

    def run(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        scope: Mapping[str, str],
        choices: Sequence[Choose] | None = None,
        limits: DecodingLimits | None = None,
    ) -> AgentRun:
        """Write steps, and call the tool of each, until the model writes ``done``.

        Args:
            prompt: The encoded ``agent_prompt``.
            choices: Functions that choose the tokens of a step, one per step; greedy by default.
            limits: Maximum number of tokens of each line, and the deadline of all model calls.

        Raise ``DecodingError`` at a limit, or if the conversation exceeds the model's context.
        """
        from casewright.planner.decoding import greedy
        from casewright.planner.grammar import DONE

        token_choices = iter(choices) if choices is not None else repeat(greedy)
        started, tools_ms = time.perf_counter(), 0.0
        run_id = str(uuid.uuid4())
        lines: list[str] = []
        outcomes: dict[int, Outcome] = {}
        written_steps: list[Written] = []
        written_thoughts: list[Written] = []
        prompt_token_count, new_tokens = 0, list(prompt.tail)
        with ExitStack() as stack:
            session: DecodingSession | None = None
            while True:
                if session is None or self.stateless:
                    stack.close()
                    session = stack.enter_context(self.decoder.session(prompt.head, limits))
                if self.thoughts:
                    new_tokens += self.model.encode_plan(BEFORE_THOUGHT)
                    session.feed(new_tokens)
                    thought = session.write(self.grammar.free_line_matcher(), limits=limits)
                    written_thoughts.append(thought)
                    before_step = self.model.encode_plan(NEXT_STEP)
                    session.feed(before_step)
                    prompt_token_count += len(new_tokens) + len(before_step)
                    new_tokens += [*thought.tokens, *before_step]
                else:
                    session.feed(new_tokens)
                    prompt_token_count += len(new_tokens)
                called_tools = [outcome.tool for outcome in outcomes.values()]
                matcher = self.grammar.line_matcher(request, called_tools)
                written_step = session.write(matcher, limits=limits, choose=next(token_choices))
                written_steps.append(written_step)
                line = self.model.decode(written_step.tokens)
                if line == DONE:
                    break
                lines.append(line)
                step = parse_plan("\n".join(lines)).steps[-1]
                outcome = _call_step(step, request, outcomes, scope, run_id)
                tools_ms += outcome.milliseconds
                outcomes[len(lines)] = outcome
                # The next session of a stateless agent reads the text of this session again.
                earlier_tokens = [*new_tokens, *written_step.tokens] if self.stateless else []
                new_tokens = [*earlier_tokens, *self.model.encode_plan(results_text(outcome))]
        return AgentRun(
            plan="\n".join(lines),
            outcomes=list(outcomes.values()),
            model_calls=len(written_steps),
            model_steps=sum(text.model_steps for text in written_steps + written_thoughts),
            prompt_tokens=prompt_token_count,
            written_tokens=sum(len(text.tokens) for text in written_steps + written_thoughts),
            model_ms=elapsed_ms(started) - tools_ms,
            tools_ms=tools_ms,
        )


def _call_step(
    step: Step,
    request: PlanRequest,
    outcomes: Mapping[int, Outcome],
    scope: Mapping[str, str],
    run_id: str,
) -> Outcome:
    """Call the tool of the next step as the graph's executor does."""
    name = f"s{len(outcomes) + 1}"
    try:
        arguments = StepInputs(request.question, request.context, outcomes).arguments(step)
    except MissingReferenceError as error:
        return Outcome(name, step.tool, "skipped", error=str(error))
    context = CallContext(run_id, name, f"{run_id}:{name}", request.question, dict(scope))
    call = Call(request.toolbox[step.tool], arguments, context, Limits())
    started = time.perf_counter()
    call.run()
    return call.outcome(name, started=started, plan_started=started)


def results_text(outcome: Outcome) -> str:
    """Return the text that the agent reads after a step: its first results, and ``NEXT_STEP``."""
    results: Any = list(outcome.rows[:MAX_ROWS]) or outcome.error or "nothing was found"
    text = json.dumps(results, ensure_ascii=False)[:MAX_CHARACTERS]
    return f"\nResults of {outcome.step}: {text}\n{NEXT_STEP}"


def _make_planner(parts: PlannerParts) -> AgentPlanner:
    from casewright.planner import CasePlanner

    return AgentPlanner(
        local_model(parts.name, parts.settings),
        scope=parts.scope,
        fallback=CasePlanner(parts.plan_cases, parts.reader),
        plan_cases=parts.plan_cases,
        examples=parts.settings.examples or 0,
    )


#: The entry point of the planner ``agent``.
AGENT = NamedPlanner(
    _make_planner,
    "local:FOLDER",
    takes=frozenset({"adapter", "device", "dtype", "examples"}),
    reads=True,
    shared=False,
    model=local_model,
)
