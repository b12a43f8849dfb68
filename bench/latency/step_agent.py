"""The step-by-step agent: asked for one step at a time, it sees each step's results.

It is the agent that REAPER compares a plan in one call with (Joshi et al. 2024, sections 1 and 4),
in its kindest form: its lines are written under the grammar, forced tokens take no model step, the
prompt's head is kept, and nothing that it has read or written in this conversation is read again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.graph import Limits as CallLimits
from casewright.graph import Outcome
from casewright.graph.call import Call, since
from casewright.graph.references import Known, MissingReferenceError
from casewright.planner import Prompt, Step, parse_plan
from casewright.planner.decoding import Choose, Decoder, Limits, greedy
from casewright.planner.grammar import DONE
from casewright.tools import CallContext

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.decoding import Conversation, Written
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel, PromptTokens

#: Stands before the question, behind the same head as for whole plans.
INSTRUCTION = """\
Do not write the whole plan but its next step only. You are then shown what the step found, and \
asked again. Write done where nothing more needs to be looked up."""
#: Results of a step that the agent is shown, and characters of them.
ROWS, CHARACTERS = 3, 400


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
        choosing = iter(choices) if choices is not None else _always_greedy()
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


def _always_greedy() -> Iterator[Choose]:
    while True:
        yield greedy
