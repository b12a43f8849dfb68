"""Planning by any LangChain chat model, in the plan language, with one repair round."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from casewright.errors import PlanError
from casewright.planner.chat_call import aask, ask, failure, place
from casewright.planner.fallback import FallbackPlanner, in_place_of
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan
from casewright.planner.plan_cases import EXAMPLES, SELECTION, similar_plans
from casewright.planner.prompt import Prompt, render_prompt
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.planner.validate import violations
from casewright.stores import CaseStore, MarginalSelector

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

_STEP_LINE = re.compile(r"^\s*s[0-9]+\s*=")
#: The model's first answer and one repair.
ROUNDS = 2


@dataclass
class _Run:
    """Conversation with the model: its messages, and what it cost."""

    request: PlanRequest
    messages: list[BaseMessage]
    started: float
    attempts: int = 0
    problem: str = ""
    tokens: dict[str, int] = field(default_factory=dict)
    written: str = ""


class ChatPlanner:
    """Asks a chat model for the plan; an invalid one is sent back once with its errors.

    When the model fails, is too slow or stays invalid, the fallback planner answers and the result
    says why.

    Args:
        model: Any LangChain chat model; see ``chat_model`` for ``provider:model`` names.
        fallback: Answers where the model does not; without one, one tool is asked the question.
        plan_cases: Plan cases to show as examples.
        examples: How many of them.
        selection: How they are picked; ``casewright calibrate`` finds what helps a model most.
        seconds: Deadline for all rounds together.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        fallback: Planner | None = None,
        plan_cases: CaseStore | None = None,
        examples: int = EXAMPLES,
        selection: MarginalSelector = SELECTION,
        seconds: float = 30.0,
    ) -> None:
        self._model = model
        self._fallback = fallback or FallbackPlanner()
        self._plan_cases = plan_cases
        self._examples = examples
        self._selection = selection
        self._seconds = seconds
        self.name = f"chat:{model_name(model)}"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the model's plan, or the fallback's; see ``Planner``."""
        run = self._begin(request)
        for _ in range(ROUNDS):
            left = self._seconds - (time.perf_counter() - run.started)
            try:
                answer = ask(self._model, run.messages, left)
            except Exception as error:  # noqa: BLE001 - a planner never raises for its model
                run.problem = self._failure(run, error)
                break
            if (plan := self._read(run, answer)) is not None:
                return self._result(run, plan)
        return self._given_up(run, self._fallback.plan(request))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        run = self._begin(request)
        for _ in range(ROUNDS):
            left = self._seconds - (time.perf_counter() - run.started)
            try:
                answer = await aask(self._model, run.messages, left)
            except Exception as error:  # noqa: BLE001 - a planner never raises for its model
                run.problem = self._failure(run, error)
                break
            if (plan := self._read(run, answer)) is not None:
                return self._result(run, plan)
        return self._given_up(run, await self._fallback.aplan(request))

    def _begin(self, request: PlanRequest) -> _Run:
        from langchain_core.messages import HumanMessage, SystemMessage

        started = time.perf_counter()
        examples = []
        if self._plan_cases is not None:
            examples = similar_plans(self._plan_cases, request, self._examples, self._selection)
        prompt: Prompt = render_prompt(request, examples)
        messages: list[BaseMessage] = [SystemMessage(prompt.head), HumanMessage(prompt.tail)]
        return _Run(request, messages, started)

    def _read(self, run: _Run, answer: BaseMessage) -> Plan | None:
        """Return the plan of an answer, or ``None`` after asking for a repair."""
        from langchain_core.messages import AIMessage, HumanMessage

        run.attempts += 1
        _count(run.tokens, getattr(answer, "usage_metadata", None))
        request, text = run.request, str(answer.text)
        run.written = text
        try:
            plan = parse_plan(plan_lines(text))
            errors = list(
                violations(
                    plan,
                    request.toolbox,
                    question=request.question,
                    context=request.context,
                    max_steps=request.max_steps,
                )
            )
        except PlanError as error:
            errors = [error]
        else:
            if not errors:
                return plan
        run.problem = "The model's plan was invalid: " + str(errors[0])
        listed = "\n".join(f"- {error}" for error in errors[:10])
        run.messages += [
            AIMessage(text),
            HumanMessage(
                f"That plan cannot be run:\n{listed}\nWrite the whole plan again, nothing else."
            ),
        ]
        return None

    def _failure(self, run: _Run, error: Exception) -> str:
        # Before the deadline, a timeout is one of the model's own, of its connection for example.
        late = time.perf_counter() - run.started >= self._seconds
        if late and isinstance(error, TimeoutError):
            return f"The model{place(self._model)} gave no plan within {self._seconds:g} s."
        return failure(self._model, error)

    def _result(self, run: _Run, plan: Plan) -> PlanResult:
        spent = (time.perf_counter() - run.started) * 1000
        return PlanResult(plan, self.name, run.attempts, "", spent, run.tokens)

    def _given_up(self, run: _Run, other: PlanResult) -> PlanResult:
        return in_place_of(
            self.name,
            run.problem,
            other,
            milliseconds=(time.perf_counter() - run.started) * 1000,
            attempts=run.attempts,
            tokens=run.tokens,
            written=run.written,
        )


def plan_lines(text: str) -> str:
    """Return the plan's lines of a chat model's answer, without what it says around them."""
    lines = [line for line in text.split("\n") if _STEP_LINE.match(line)]
    return "\n".join(lines) if lines else text


def model_name(model: Any) -> str:
    """Return how a chat model is called in answers and tables."""
    for attribute in ("model_name", "model", "model_id"):
        if isinstance(value := getattr(model, attribute, None), str) and value:
            return value
    return type(model).__name__


def _count(tokens: dict[str, int], usage: Mapping[str, Any] | None) -> None:
    if usage:
        for name, key in (("input", "input_tokens"), ("output", "output_tokens")):
            tokens[name] = tokens.get(name, 0) + int(usage.get(key) or 0)
