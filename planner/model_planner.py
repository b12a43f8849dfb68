"""Planning by a local language model, under a grammar by which no plan can be malformed."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.errors import InputError, PlanError
from casewright.planner.chat_planner import plan_lines
from casewright.planner.fallback import FallbackPlanner, in_place_of
from casewright.planner.model_limits import FREE_TOKENS, HEAD_BYTES, MAX_TOKENS
from casewright.planner.parse import parse_plan
from casewright.planner.plan_cases import EXAMPLES, SELECTION, similar_plans
from casewright.planner.prompt import render_prompt
from casewright.planner.request import Planner, PlanRequest, PlanResult
from casewright.planner.tool_prior import ToolPrior
from casewright.stores import CaseStore, MarginalSelector
from casewright.tools.deadline import start_daemon

if TYPE_CHECKING:
    from casewright.planner.decoding import Decoder, Written
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel, PromptTokens, TokenModel
    from casewright.planner.numpy_model import NumpyModel
    from casewright.planner.numpy_model.decoder import NumpyDecoder
    from casewright.tools import ToolExample


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, its prompt, and the seconds that it took to make."""

    request: PlanRequest
    prompt: PromptTokens
    seconds: float


class ModelPlanner:
    """Lets a causal language model write the whole plan in one call (REAPER, Joshi et al. 2024).

    It writes under a grammar that is made from the request, so only a valid plan can be written;
    it is checked all the same. Where the model is out of time or of tokens, or fails, the fallback
    planner answers, and the result says why.

    With ``constrained=False`` it writes greedily what it likes until it ends its answer, as the
    paper's planner does; lines around a plan do not count, as for a chat model. Where that is no
    valid plan, the fallback planner answers, and the result's ``written`` holds the text.

    Args:
        model: The language model; see ``load_language_model`` and ``load_numpy_model``.
        fallback: Answers where the model does not; without one, one tool is asked the question.
        plan_cases: Plan cases to show as examples.
        examples: How many of them.
        selection: How they are picked; ``casewright calibrate`` finds what helps a model most.
        seconds: Deadline of a plan, or of a batch of plans.
        tokens: Most tokens of a plan; by default fewer where no grammar ends it.
        batch: Most questions that ``plan_many`` decodes together.
        head_bytes: Memory for the key/value states of prompt heads.
        static: See ``Decoder``.
        constrained: Whether the grammar is followed.
        prior: Weight of the plan cases' own word on which tools to call, beside that of the model's
            logits; for models so small that they have not read enough to know. See ``ToolPrior``.
        spans: Under the grammar, texts are spans of the question wherever a parameter takes a text
            without choices; for models so small that they misspell what they copy.

    Raises:
        InputError: A prior is given, and no plan cases.
    """

    def __init__(
        self,
        model: LanguageModel | NumpyModel,
        *,
        fallback: Planner | None = None,
        plan_cases: CaseStore | None = None,
        examples: int = EXAMPLES,
        selection: MarginalSelector = SELECTION,
        seconds: float = 30.0,
        tokens: int | None = None,
        batch: int = 8,
        head_bytes: int = HEAD_BYTES,
        static: bool | None = None,
        constrained: bool = True,
        prior: float = 0.0,
        spans: bool = False,
    ) -> None:
        if prior and plan_cases is None:
            raise InputError("A prior over tools comes from plan cases. Give plan_cases, too.")
        self._model = model
        self._decoder = _decoder(model, head_bytes, static)
        self._matcher = _matchers(model, constrained=constrained, spans=spans)
        self._fallback = fallback or FallbackPlanner()
        self._plan_cases = plan_cases
        self._examples = examples
        self._selection = selection
        self._seconds = seconds
        default = MAX_TOKENS if constrained else FREE_TOKENS
        self._tokens = default if tokens is None else tokens
        self._weight = prior
        self._prior = ToolPrior(plan_cases) if prior and plan_cases is not None else None
        self.batch = batch
        self.name = f"model:{model.name}{'' if constrained else ', grammar off'}"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the model's plan, or the fallback's; see ``Planner``."""
        return self.plan_many([request])[0]

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same, in a thread of its own."""
        return await asyncio.wrap_future(start_daemon(lambda: self.plan(request)))

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a plan for each request, in order; those with one head are decoded together.

        The time of a result is its share of its batch's.
        """
        results: list[PlanResult | None] = [None] * len(requests)
        together: dict[tuple[int, ...], list[tuple[int, _Asked]]] = defaultdict(list)
        for place, request in enumerate(requests):
            started = time.perf_counter()
            try:
                prompt = self._prompt(request)
            except Exception as error:  # noqa: BLE001 - a planner never raises for its model
                spent = time.perf_counter() - started
                results[place] = self._given_up(request, error, spent)
            else:
                asked = _Asked(request, prompt, time.perf_counter() - started)
                together[prompt.head].append((place, asked))
        for group in together.values():
            # Shorter prompts are padded to the longest of their batch.
            group.sort(key=lambda one: len(one[1].prompt.tail))
            for start in range(0, len(group), self.batch):
                part = group[start : start + self.batch]
                made = self._write([asked for _, asked in part])
                for (place, _), result in zip(part, made, strict=True):
                    results[place] = result
        return [result for result in results if result is not None]

    def _prompt(self, request: PlanRequest) -> PromptTokens:
        """Return the prompt, with as many of its examples as the model has positions for."""
        found: list[ToolExample] = []
        if self._plan_cases is not None:
            found = similar_plans(self._plan_cases, request, self._examples, self._selection)
        most = self._model.positions
        while True:
            tokens = self._model.encode(render_prompt(request, found))
            length = len(tokens.head) + len(tokens.tail)
            if not found or most is None or length + self._tokens <= most:
                return tokens
            found.pop()

    def _write(self, asked: Sequence[_Asked]) -> list[PlanResult]:
        """Return the plans of prompts that have one head."""
        from casewright.planner.decoding.fusion import fused
        from casewright.planner.decoding.limits import Limits

        started = time.perf_counter()
        limits = Limits(self._tokens, started + self._seconds)
        prompts = [one.prompt for one in asked]
        matchers: list[Matcher] = []
        written: Sequence[Written | Exception]
        try:
            matchers = [self._matcher(one.request) for one in asked]
            led = [self._led(one.request, m) for one, m in zip(asked, matchers, strict=True)]
            if len(asked) == 1:
                written = [self._decoder.write(prompts[0], led[0], limits=limits, choose=fused)]
            else:
                written = self._decoder.write_many(prompts, led, limits=limits, choose=fused)
        except Exception as error:  # noqa: BLE001 - a planner never raises for its model
            written = [error] * len(asked)
        share = (time.perf_counter() - started) / len(asked)
        texts = [self._text_so_far(matcher) for matcher in matchers] or [""] * len(asked)
        return [
            self._result(one.request, made, text, one.seconds + share)
            for one, made, text in zip(asked, written, texts, strict=True)
        ]

    def _led(self, request: PlanRequest, matcher: Matcher) -> Matcher:
        """Return the matcher, with what the plan cases say where they are asked."""
        from casewright.planner.decoding.fusion import FusedMatcher

        if self._prior is None:
            return matcher
        return FusedMatcher(matcher, self._model, self._prior.shares(request), self._weight)

    def _text_so_far(self, matcher: Matcher) -> str:
        """Return what was written without a grammar, also where decoding was stopped."""
        from casewright.planner.decoding.free_matcher import FreeMatcher

        return self._model.decode(matcher.tokens) if isinstance(matcher, FreeMatcher) else ""

    def _result(
        self, request: PlanRequest, made: Written | Exception, text: str, seconds: float
    ) -> PlanResult:
        if isinstance(made, Exception):
            return self._given_up(request, made, seconds, text)
        tokens = {
            "input": made.prompt_tokens,
            "output": len(made.tokens),
            "forced": made.forced,
            "model_steps": made.model_steps,
        }
        whole = self._model.decode(made.tokens)
        try:
            plan = parse_plan(plan_lines(whole))
            request.validate(plan)
        except PlanError as error:
            return self._given_up(request, error, seconds, whole, tokens)
        return PlanResult(plan, self.name, milliseconds=seconds * 1000, tokens=tokens)

    def _given_up(
        self,
        request: PlanRequest,
        why: Exception,
        seconds: float,
        text: str = "",
        tokens: Mapping[str, int] | None = None,
    ) -> PlanResult:
        other = self._fallback.plan(request)
        spent = seconds * 1000 + other.milliseconds
        return in_place_of(self.name, why, other, milliseconds=spent, tokens=tokens, written=text)


def _decoder(
    model: LanguageModel | NumpyModel, head_bytes: int, static: bool | None
) -> Decoder | NumpyDecoder:
    """Return what writes with the model, importing no more than it needs."""
    from casewright.planner.numpy_model import NumpyModel

    if isinstance(model, NumpyModel):
        from casewright.planner.numpy_model.decoder import NumpyDecoder

        return NumpyDecoder(model, head_bytes=head_bytes)
    # Transformers is imported with it.
    from casewright.planner.decoding import Decoder

    return Decoder(model, head_bytes=head_bytes, static=static)


def _matchers(
    model: TokenModel, *, constrained: bool, spans: bool
) -> Callable[[PlanRequest], Matcher]:
    """Return what makes the matcher of a request's plan."""
    if constrained:
        from casewright.planner.grammar import PlanGrammar

        return PlanGrammar(model.grammar_tokenizer, spans=spans).plan
    from casewright.planner.decoding.free_matcher import FreeMatcher, text_tokens

    allowed = text_tokens(model)
    return lambda request: FreeMatcher(allowed)
