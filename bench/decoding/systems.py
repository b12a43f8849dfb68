"""The systems that write plans: transformers' ``generate`` and Casewright's decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from casewright.bench.harness import timed
from casewright.bench.scripts import Script, Task
from casewright.planner import CasePlanner, PlanRequest
from casewright.planner.decoding import Decoder, Written, greedy
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.planner.language_model import LanguageModel, PromptTokens
from casewright.stores import CaseStore

#: Names of the systems: ``generate``, ``generate`` with a grammar, and Casewright's decoder.
PLAIN, MASKED, CASEWRIGHT = "generate", "generate, masked", "casewright"
#: Suffix of the name of a system that caches the KV states of the head, with which prompts begin.
CACHED_HEAD_SUFFIX = ", head kept"
WITH_CACHED_HEAD = CASEWRIGHT + CACHED_HEAD_SUFFIX
#: Names of systems without a script, in which the model chooses the tokens, and the names' prefix.
#: A “drafted” system decodes speculatively: the model checks the tokens of a draft.
OWN_CHOICE = "own choice: "
OWN_DRAFTED = f"{OWN_CHOICE}{CASEWRIGHT}, drafted{CACHED_HEAD_SUFFIX}"
OWN_CASEWRIGHT = f"{OWN_CHOICE}{WITH_CACHED_HEAD}"
OWN_MASKED = f"{OWN_CHOICE}{MASKED}{CACHED_HEAD_SUFFIX}"
#: The maximum number of tokens that masked ``generate`` writes.
MAX_TOKENS = 1024


class WrittenPlan(NamedTuple):
    """A plan that a system wrote."""

    text: str
    plan_tokens: int  # the number of the plan's tokens, without the end token
    model_steps: int  # the number of calls of the network that choose tokens
    uncached_prompt_tokens: int
    milliseconds: float  # the time from the request to the last token, grammar included


class Generation:
    """Transformers' greedy ``generate``; ``head_cache`` is from ``head_states``, or ``None``."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def head_states(self, head: Sequence[int]) -> Any:
        """Return the KV cache of a prompt's head."""
        import torch
        from transformers import DynamicCache

        network: Any = self._model.network
        cache = DynamicCache(config=network.config)
        ids = torch.tensor([list(head)], device=self._model.device)
        with torch.no_grad():
            network(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cache

    def masked(
        self,
        prompt: PromptTokens,
        matcher: PlanMatcher,
        head_cache: Any = None,
        choices: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the tokens of a text that a grammar allows, without the end token.

        This call advances the matcher to the end of the text. ``choices`` are the tokens to write;
        by default, each step writes the likeliest allowed token.
        """
        from transformers import LogitsProcessorList

        options = {"logits_processor": LogitsProcessorList([_mask(matcher, choices)])}
        tokens = self.generate(prompt, head_cache, max_new_tokens=MAX_TOKENS, **options)
        return [token for token in tokens if token not in self._model.ends]

    def generate(self, prompt: PromptTokens, head_cache: Any, **settings: Any) -> list[int]:
        """Return the generated tokens; ``settings`` are options of transformers' ``generate``."""
        import torch

        ids = torch.tensor([[*prompt.head, *prompt.tail]], device=self._model.device)
        network: Any = self._model.network
        tokens = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            use_cache=True,
            past_key_values=head_cache,
            eos_token_id=list(self._model.ends),
            pad_token_id=self._model.ends[0],
            **settings,
        )
        generated: list[int] = tokens[0, ids.shape[1] :].tolist()
        return generated


def _mask(matcher: PlanMatcher, choices: Sequence[int] | None) -> Any:
    """Return a logits processor that allows the grammar's tokens, or only the next of ``choices``.

    The processor sets the scores (1, vocabulary) of other tokens to -infinity; ids are (1, length).
    """
    import torch

    remaining: Iterator[int] | None = None if choices is None else iter(choices)
    started = False

    def process(input_ids: Any, scores: Any) -> Any:
        nonlocal started
        if started:  # the first call gets only tokens of the prompt
            matcher.consume(int(input_ids[0, -1]))
        started = True
        mask = torch.from_numpy(matcher.mask(scores.shape[-1])).to(scores.device)
        if remaining is not None:
            mask &= torch.arange(len(mask), device=mask.device) == next(remaining)
        return scores.masked_fill(~mask, float("-inf"))

    return process


class Systems:
    """The systems of one model; ``head`` has the tokens with which all prompts begin."""

    def __init__(self, model: LanguageModel, grammar: PlanGrammar, head: Sequence[int]) -> None:
        self._model = model
        self._grammar = grammar
        self._generation = Generation(model)
        self._head_states = self._generation.head_states(head)
        self._decoder, self._uncached_decoder = Decoder(model), Decoder(model, prefix_bytes=0)

    def scripted(self) -> dict[str, Callable[[Task, PromptTokens], WrittenPlan]]:
        """Return the systems that write a task's plan with its script, by name."""

        def write_masked(task: Task, prompt: PromptTokens, *, cached: bool) -> WrittenPlan:
            return self._masked(task.request, prompt, task.masked, cached=cached)

        writers: dict[str, Callable[..., WrittenPlan]]
        writers = {PLAIN: self._plain, MASKED: write_masked, CASEWRIGHT: self.decoded_plan}
        return {
            name + suffix: partial(write, cached=bool(suffix))
            for name, write in writers.items()
            for suffix in ("", CACHED_HEAD_SUFFIX)
        }

    def decoded_plan(self, task: Task, prompt: PromptTokens, *, cached: bool = True) -> WrittenPlan:
        """Write a task's plan with Casewright's decoder."""
        return self._decoded(task.request, prompt, task.forced, cached=cached)

    def own_choice(
        self, requests: Sequence[PlanRequest], prompts: Sequence[PromptTokens], store: CaseStore
    ) -> dict[str, Callable[[int], WrittenPlan]]:
        """Return the systems in which a trained model chooses the tokens, by name.

        A system takes the index of a request. The case planner writes the drafts, and the time of
        a plan includes the draft's time.
        """
        planner = CasePlanner(store)

        def draft(number: int) -> str:
            return str(planner.plan(requests[number]).plan)

        return {
            OWN_MASKED: lambda n: self._masked(requests[n], prompts[n]),
            OWN_CASEWRIGHT: lambda n: self._decoded(requests[n], prompts[n]),
            OWN_DRAFTED: lambda n: self._decoded(requests[n], prompts[n], draft=partial(draft, n)),
        }

    def _plain(self, task: Task, prompt: PromptTokens, *, cached: bool) -> WrittenPlan:
        # The copy is not timed: another program could crop the cache instead of copying it.
        head_cache = deepcopy(self._head_states) if cached else None
        # Without a grammar, the model writes exactly as many tokens as the plan has.
        length_limits = dict.fromkeys(("min_new_tokens", "max_new_tokens"), len(task.masked.tokens))
        work = partial(self._generation.generate, prompt, head_cache, **length_limits)
        tokens, milliseconds = timed(work, self._model.device)
        return self._as_plan(tokens, len(tokens), prompt, milliseconds, cached=cached)

    def _masked(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        cached: bool = True,
    ) -> WrittenPlan:
        head_cache = deepcopy(self._head_states) if cached else None
        choices = script.choices if script else None
        tokens, milliseconds = timed(
            lambda: self._generation.masked(
                prompt, self._grammar.plan_matcher(request), head_cache, choices
            ),
            self._model.device,
        )
        # The last model step writes the end token.
        return self._as_plan(tokens, len(tokens) + 1, prompt, milliseconds, cached=cached)

    def _decoded(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        cached: bool = True,
        draft: Callable[[], str] = str,  # ``str`` returns an empty draft
    ) -> WrittenPlan:
        decoder = self._decoder if cached else self._uncached_decoder
        choose = script.chooser() if script else greedy

        def write() -> Written:
            matcher = self._grammar.plan_matcher(request)
            return decoder.write(prompt, matcher, choose=choose, draft=draft())

        written, milliseconds = timed(write, self._model.device)
        tokens, is_cached = list(written.tokens), written.prefix_cached
        return self._as_plan(tokens, written.model_steps, prompt, milliseconds, cached=is_cached)

    def _as_plan(
        self, tokens: list[int], steps: int, prompt: PromptTokens, ms: float, *, cached: bool
    ) -> WrittenPlan:
        uncached_count = len(prompt.tail) + (0 if cached else len(prompt.head))
        return WrittenPlan(self._model.decode(tokens), len(tokens), steps, uncached_count, ms)
