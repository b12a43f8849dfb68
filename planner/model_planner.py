"""Planning by a local language model, under a grammar that admits only valid plans."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from casewright.errors import PlanError
from casewright.planner.chat_planner import plan_lines
from casewright.planner.continuing import validated_plan
from casewright.planner.fallback import FallbackPlanner, fallback_result
from casewright.planner.model_limits import FREE_TOKENS, MAX_TOKENS
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan
from casewright.planner.plan_cases import EXAMPLE_COUNT, SELECTION, similar_plans
from casewright.planner.prompt import render_prompt
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.stores import CaseStore, MarginalSelector
from casewright.stores.paths import cache_folder
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.decoding import Written
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel, PromptTokens


@dataclass(frozen=True, slots=True)
class _PromptedRequest:
    """A request with its prompt, and the time that it took to render the prompt."""

    request: PlanRequest
    prompt: PromptTokens
    prompt_seconds: float


class ModelPlanner:
    """Lets a causal language model write the whole plan in one call (REAPER, Joshi et al. 2024).

    The model writes under a grammar for the request, which admits only valid plans; the plan is
    still checked. If the model runs out of time or tokens, or fails, the result has the fallback
    planner's plan and the reason.

    With ``constrained=False`` the model writes greedily without a grammar until it ends its answer,
    as the paper's planner does; lines before and after the plan are ignored. If the plan is not
    valid, the result has the fallback planner's plan, and the model's text as ``written``.

    With a draft planner, the model reads the draft planner's plan in one forward pass, and keeps
    the tokens up to the first one that the model would not choose (speculative decoding). The plan
    is the same as without a draft (see ``Decoder.write``). In the result,
    ``tokens["model_steps"]`` is the number of decoding steps, and ``tokens["drafted"]`` is the
    number of steps that the draft saved.

    Args:
        model: The language model; see ``load_language_model``.
        fallback: Planner for requests on which the model fails; by default ``FallbackPlanner``.
        plan_cases: Store of the plan cases that the prompt shows as examples.
        examples: Maximum number of plan cases in a prompt.
        selection: Selects the plan cases for a prompt.
        seconds: Time limit for a plan, or for a batch of plans.
        tokens: Maximum number of tokens of a plan; by default ``MAX_TOKENS``, or ``FREE_TOKENS``
            without a grammar.
        batch: Maximum number of questions that ``plan_many`` decodes together.
        constrained: True if the model writes under the grammar.
        draft: Quick planner that writes drafts, such as the case planner. It is used for a question
            that is decoded alone, not in a batch.
        head_folder: Folder with cached prompt prefixes ("heads"), which processes share if the
            model was loaded from files; by default ``heads`` in the cache folder. With ``None``,
            prefixes are cached only in memory.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        fallback: Planner | None = None,
        plan_cases: CaseStore | None = None,
        examples: int = EXAMPLE_COUNT,
        selection: MarginalSelector = SELECTION,
        seconds: float = 30.0,
        tokens: int | None = None,
        batch: int = 8,
        constrained: bool = True,
        draft: Planner | None = None,
        head_folder: Path | Literal["cache"] | None = "cache",
    ) -> None:
        # Imported here because it imports transformers.
        from casewright.planner.decoding import Decoder

        self._model = model
        folder = cache_folder() / "heads" if head_folder == "cache" else head_folder
        self._decoder = Decoder(model, prefix_folder=folder)
        self._new_matcher = _matcher_factory(model, constrained=constrained)
        self._draft = draft
        self._fallback = fallback or FallbackPlanner()
        self._plan_cases = plan_cases
        self._examples = examples
        self._selection = selection
        self._max_seconds = seconds
        default_tokens = MAX_TOKENS if constrained else FREE_TOKENS
        self._max_tokens = default_tokens if tokens is None else tokens
        self.batch = batch
        self.name = f"model:{model.name}{'' if constrained else ', grammar off'}"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the model's plan, or the fallback planner's; see ``Planner``."""
        return self.plan_many([request])[0]

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Run ``plan`` in a daemon thread and return its result."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a plan for each request, in order.

        Requests with the same prompt prefix are decoded together, in batches. A result's time is
        the time for its prompt and an equal share of its batch's time.
        """
        results: dict[int, PlanResult] = {}
        groups: dict[tuple[int, ...], list[tuple[int, _PromptedRequest]]] = defaultdict(list)
        for index, request in enumerate(requests):
            started = time.perf_counter()
            try:
                prompt = self._prompt(request)
            except Exception as error:  # noqa: BLE001 - a planner must not raise a model's error
                seconds = time.perf_counter() - started
                results[index] = self._fallback_result(request, error, seconds)
            else:
                prompted = _PromptedRequest(request, prompt, time.perf_counter() - started)
                groups[prompt.head].append((index, prompted))
        for group in groups.values():
            # Sorted by length, since a batch pads its prompts to the length of the longest one.
            group.sort(key=lambda indexed: len(indexed[1].prompt.tail))
            for start in range(0, len(group), self.batch):
                indices, batch = zip(*group[start : start + self.batch], strict=True)
                results.update(zip(indices, self._batch_results(batch), strict=True))
        return [results[index] for index in range(len(requests))]

    def prompt_tokens(self, request: PlanRequest) -> int:
        """Return the length of the prompt for a request, in tokens."""
        prompt = self._prompt(request)
        return len(prompt.head) + len(prompt.tail)

    def ranked(self, request: PlanRequest, plans: Sequence[Plan]) -> Mapping[Plan, float]:
        """Return log-probabilities: of these plans, and of the plan that the model writes.

        The most probable of the given plans is the draft of the plan that the model writes.

        Raises:
            DecodingError: The model runs out of time or tokens, or the prompt is too long.
            GrammarError: The model's tokens cannot write the required text.
            PlanError: The model wrote no valid plan.
        """
        from casewright.planner.decoding import DecodingLimits

        limits = DecodingLimits(self._max_tokens, time.perf_counter() + self._max_seconds)
        prompt = self._prompt(request)
        answer_by_plan = {plan: self._answer_tokens(plan) for plan in plans}
        with self._decoder.session(prompt.head, limits) as session:
            session.feed(prompt.tail)
            tree = session.read_tree([*answer_by_plan.values()], limits)
            scores = {p: tree.log_probability(answer) for p, answer in answer_by_plan.items()}
            matcher, end_tokens = self._new_matcher(request), self._model.ends
            tokens: Sequence[int] | None = tree.greedy_tokens(matcher, end_tokens)
            # ``None``: the plan that the model writes is none of the given plans.
            if tokens is None:
                draft = str(max(scores, key=lambda plan: scores[plan])) if scores else ""
                matcher = self._new_matcher(request)
                tokens = session.write(matcher, limits=limits, draft=draft).tokens
        plan = validated_plan(parse_plan(plan_lines(self._model.decode(tokens))), request)
        if plan not in scores:
            with self._decoder.session(prompt.head, limits) as session:
                session.feed(prompt.tail)
                answer = self._answer_tokens(plan)
                scores[plan] = session.read_tree([answer], limits).log_probability(answer)
        return scores

    def _answer_tokens(self, plan: Plan) -> tuple[int, ...]:
        return (*self._model.encode_plan(str(plan)), self._model.ends[0])

    def _prompt(self, request: PlanRequest) -> PromptTokens:
        """Return the prompt, with as many plan cases as fit into the model's context."""
        examples = similar_plans(self._plan_cases, request, self._examples, self._selection)
        context_length = self._model.context_length
        while True:
            prompt = self._model.encode(render_prompt(request, examples))
            prompt = replace(prompt, tail=(*prompt.tail, *self._fixed_tokens(request)))
            needed = len(prompt.head) + len(prompt.tail) + self._max_tokens
            if not examples or context_length is None or needed <= context_length:
                return prompt
            examples.pop()

    def _batch_results(self, batch: Sequence[_PromptedRequest]) -> list[PlanResult]:
        from casewright.planner.decoding import DecodingLimits

        started = time.perf_counter()
        limits = DecodingLimits(self._max_tokens, started + self._max_seconds)
        prompts = [item.prompt for item in batch]
        matchers: list[Matcher] = []
        outcomes: Sequence[Written | Exception]
        try:
            matchers = [self._new_matcher(item.request) for item in batch]
            for matcher, item in zip(matchers, batch, strict=True):
                for token in self._fixed_tokens(item.request):
                    matcher.consume(token)
            if len(batch) == 1:
                draft = self._draft_text(batch[0].request)
                written = self._decoder.write(prompts[0], matchers[0], limits=limits, draft=draft)
                outcomes = [written]
            else:
                outcomes = self._decoder.write_many(prompts, matchers, limits=limits)
        except Exception as error:  # noqa: BLE001 - a planner must not raise a model's error
            outcomes = [error] * len(batch)
        seconds_each = (time.perf_counter() - started) / len(batch)
        texts = [self._text_so_far(matcher) for matcher in matchers] or [""] * len(batch)
        return [
            self._result(item.request, outcome, text, item.prompt_seconds + seconds_each)
            for item, outcome, text in zip(batch, outcomes, texts, strict=True)
        ]

    def _draft_text(self, request: PlanRequest) -> str:
        if self._draft is None or request.failures:
            return ""
        try:
            plan = self._draft.plan(request).plan
            request.validate(plan)
        except Exception:  # noqa: BLE001 - the plan is the same without a draft
            return ""
        return str(plan)

    def _fixed_tokens(self, request: PlanRequest) -> list[int]:
        text = _fixed_steps_text(request)
        return self._model.encode_plan(text) if text else []

    def _text_so_far(self, matcher: Matcher) -> str:
        """Return the text that the model has written so far; empty under a grammar."""
        from casewright.planner.decoding.free_matcher import FreeMatcher

        return self._model.decode(matcher.tokens) if isinstance(matcher, FreeMatcher) else ""

    def _result(
        self, request: PlanRequest, outcome: Written | Exception, text_so_far: str, seconds: float
    ) -> PlanResult:
        if isinstance(outcome, Exception):
            return self._fallback_result(request, outcome, seconds, text_so_far)
        tokens = {
            "input": outcome.prompt_tokens,
            "output": len(outcome.tokens),
            "forced": outcome.forced,
            "model_steps": outcome.model_steps,
            "drafted": outcome.drafted,
        }
        text = _fixed_steps_text(request) + self._model.decode(outcome.tokens)
        try:
            plan = validated_plan(parse_plan(plan_lines(text)), request)
        except PlanError as error:
            return self._fallback_result(request, error, seconds, text, tokens)
        return PlanResult(plan, self.name, milliseconds=seconds * 1000, tokens=tokens)

    def _fallback_result(
        self,
        request: PlanRequest,
        error: Exception,
        seconds: float,
        text: str = "",
        tokens: Mapping[str, int] | None = None,
    ) -> PlanResult:
        result = self._fallback.plan(request)
        elapsed_ms = seconds * 1000 + result.milliseconds
        return fallback_result(
            self.name, error, result, milliseconds=elapsed_ms, tokens=tokens, written=text
        )


def _fixed_steps_text(request: PlanRequest) -> str:
    """Return the fixed steps and the beginning of the next step as text; empty if none is fixed."""
    fixed = request.fixed
    return f"{fixed}\ns{len(fixed.steps) + 1} = " if fixed.steps else ""


def _matcher_factory(
    model: LanguageModel, *, constrained: bool
) -> Callable[[PlanRequest], Matcher]:
    if constrained:
        from casewright.planner.grammar import PlanGrammar

        return PlanGrammar(model.grammar_tokenizer).plan_matcher
    from casewright.planner.decoding.free_matcher import FreeMatcher, text_and_end_tokens

    allowed = text_and_end_tokens(model)
    return lambda request: FreeMatcher(allowed)
