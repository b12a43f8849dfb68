"""Planning by any LangChain chat model; the model may correct an invalid plan once."""

from __future__ import annotations

import re
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from casewright.errors import PlanError
from casewright.planner.chat_call import aask, ask, at_server, failure_text, token_counts
from casewright.planner.continuing import validated_plan
from casewright.planner.fallback import FallbackPlanner, fallback_result
from casewright.planner.parse import parse_plan
from casewright.planner.plan_cases import EXAMPLE_COUNT, SELECTION, similar_plans
from casewright.planner.prompt import render_prompt
from casewright.planner.request import Planner, PlanRequest, PlanResult, milliseconds_since
from casewright.stores import CaseStore, MarginalSelector
from casewright.tools.body import Body, Work, arun, run

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

_STEP_LINE = re.compile(r"^\s*s[0-9]+\s*=")
#: Maximum number of answers of the model; the second answer corrects the errors of the first.
MAX_ANSWERS = 2


class ChatPlanner:
    """Asks a chat model for a plan, and once more with the errors if the plan is invalid.

    If the model fails, is too slow or writes two invalid plans, the result has the fallback
    planner's plan and the reason.

    Args:
        model: The model; ``chat_model`` makes one from a name such as ``openai:gpt-4o-mini``.
        fallback: Planner for requests on which the model fails; by default ``FallbackPlanner``.
        plan_cases: Store of the plan cases that the prompt shows as examples.
        examples: Maximum number of plan cases in a prompt.
        selection: How plan cases are selected; ``casewright calibrate`` finds the best way.
        seconds: Time limit for all answers of the model together.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        fallback: Planner | None = None,
        plan_cases: CaseStore | None = None,
        examples: int = EXAMPLE_COUNT,
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
        """Return the model's plan, or the fallback plan; see ``Planner``."""
        return run(self._plan_body(request))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        return await arun(self._plan_body(request))

    def _plan_body(self, request: PlanRequest) -> Body[PlanResult]:
        """Return a generator that yields calls; ``run`` makes them, and ``arun`` awaits them."""
        from langchain_core.messages import HumanMessage, SystemMessage

        started = time.perf_counter()
        model, fallback = self._model, self._fallback
        examples = similar_plans(self._plan_cases, request, self._examples, self._selection)
        prompt = render_prompt(request, examples)
        messages: list[BaseMessage] = [SystemMessage(prompt.head), HumanMessage(prompt.tail)]
        attempts, problem, answer_text = 0, "", ""
        tokens = Counter[str]()
        for _ in range(MAX_ANSWERS):
            seconds_left = self._seconds - (time.perf_counter() - started)
            try:
                answer = yield Work(
                    partial(ask, model, messages, seconds_left),
                    partial(aask, model, messages, seconds_left),
                )
            except Exception as error:  # noqa: BLE001 - a planner must not raise a model's error
                problem = self._failure_text(error, started)
                break
            attempts += 1
            tokens.update(token_counts(answer))
            answer_text = str(answer.text)
            try:
                plan = parse_plan(plan_lines(answer_text))
                errors = list(request.violations(plan))
                if not errors:
                    return PlanResult(
                        validated_plan(plan, request),
                        self.name,
                        attempts,
                        milliseconds=milliseconds_since(started),
                        tokens=dict(tokens),
                    )
            except PlanError as error:
                errors = [error]
            problem = f"The model's plan was invalid: {errors[0]}"
            messages += _correction_messages(answer_text, errors)
        result = yield Work(lambda: fallback.plan(request), lambda: fallback.aplan(request))
        return fallback_result(
            self.name,
            problem,
            result,
            milliseconds=milliseconds_since(started),
            attempts=attempts,
            tokens=dict(tokens),
            written=answer_text,
        )

    def _failure_text(self, error: Exception, started: float) -> str:
        # A timeout before the deadline comes from the model, for example from its connection.
        is_past_deadline = time.perf_counter() - started >= self._seconds
        if is_past_deadline and isinstance(error, TimeoutError):
            return f"The model{at_server(self._model)} gave no plan within {self._seconds:g} s."
        return failure_text(self._model, error)


def _correction_messages(answer_text: str, errors: list[PlanError]) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage

    lines = "\n".join(f"- {error}" for error in errors[:10])
    correction = f"That plan cannot be run:\n{lines}\nWrite the whole plan again, nothing else."
    return [AIMessage(answer_text), HumanMessage(correction)]


def plan_lines(text: str) -> str:
    """Return the lines of an answer that begin like steps, or the whole answer if no line does."""
    lines = [line for line in text.split("\n") if _STEP_LINE.match(line)]
    return "\n".join(lines) if lines else text


def model_name(model: Any) -> str:
    """Return a chat model's name for answers and tables."""
    for attribute in ("model_name", "model", "model_id"):
        if isinstance(value := getattr(model, attribute, None), str) and value:
            return value
    return type(model).__name__
