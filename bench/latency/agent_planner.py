"""The step-by-step agent as a planner, so that it is measured beside those that plan in one call.

REAPER's other baseline (Joshi et al. 2024, sections 1 and 4): its plan is the steps that it took.
It needs tools that can be called: it reads what each found before it writes the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from casewright.bench.latency.step_agent import AgentRun, StepAgent, agent_prompt
from casewright.errors import InputError
from casewright.graph.call import since
from casewright.planner import PlanRequest, PlanResult, parse_plan, render_prompt
from casewright.planner.decoding import Decoder, Limits
from casewright.planner.fallback import FallbackPlanner, in_place_of
from casewright.planner.grammar import PlanGrammar
from casewright.planner.model_limits import MAX_TOKENS
from casewright.planner.plan_cases import similar_plans
from casewright.tools import NO_EVIDENCE, Toolbox
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.planner.request import Planner
    from casewright.stores import CaseStore


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
        return PlanResult(
            plan,
            self.name,
            milliseconds=since(started),
            tokens=_tokens(run, len(prompt.head)),
        )

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


def _tokens(run: AgentRun, head: int) -> dict[str, int]:
    return {
        "input": head + run.prompt_tokens,
        "output": run.written_tokens,
        "model_steps": run.model_steps,
        "model_calls": run.model_calls,
    }
