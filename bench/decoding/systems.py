"""The systems that write plans: transformers' ``generate``, plain or masked, and the decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import timed
from casewright.bench.scripts import Script, Task
from casewright.planner import CasePlanner
from casewright.planner.decoding import Decoder, greedy

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.grammar import PlanGrammar, PlanMatcher
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.stores import CaseStore

PLAIN, MASKED, OWN = "generate", "generate, masked", "casewright"
#: The end of a system's name if it reuses the KV cache of the prompt's head.
KEPT = ", head kept"
#: Names of the systems without a script: the model's own choice.
CHOICE = "own choice: "
DRAFTED, UNDRAFTED = f"{CHOICE}{OWN}, drafted{KEPT}", f"{CHOICE}{OWN}{KEPT}"
GENERATED = f"{CHOICE}{MASKED}{KEPT}"
#: Most tokens under a mask.
MOST = 1024


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A plan that a system wrote.

    Attributes:
        plan_tokens: Tokens that were written, without the one that ends them.
        milliseconds: From the request to the tokens, its grammar included.
    """

    text: str
    plan_tokens: int
    model_steps: int
    prompt_tokens: int
    milliseconds: float


class Generation:
    """Greedy ``generate`` with its dynamic cache; ``head`` is a cache with the prompt's head."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def head_states(self, head: Sequence[int]) -> Any:
        """Return a KV cache of a prompt's head."""
        import torch
        from transformers import DynamicCache

        network: Any = self._model.network
        cache = DynamicCache(config=network.config)
        ids = torch.tensor([list(head)], device=self._model.device)
        with torch.no_grad():
            network(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cache

    def plain(self, prompt: PromptTokens, tokens: int, head: Any = None) -> list[int]:
        """Return exactly ``tokens`` tokens, without a grammar."""
        return self._written(prompt, head, min_new_tokens=tokens, max_new_tokens=tokens)

    def masked(
        self,
        prompt: PromptTokens,
        matcher: PlanMatcher,
        head: Any = None,
        choices: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the tokens of a text that a grammar admits, without the end token.

        Args:
            matcher: Of the grammar; it is used up.
            choices: The token of each step, in place of the likeliest allowed one.
        """
        from transformers import LogitsProcessorList

        processors = LogitsProcessorList([_mask(matcher, choices)])
        tokens = self._written(prompt, head, max_new_tokens=MOST, logits_processor=processors)
        return [token for token in tokens if token not in self._model.ends]

    def _written(self, prompt: PromptTokens, head: Any, **settings: Any) -> list[int]:
        import torch

        ids = torch.tensor([[*prompt.head, *prompt.tail]], device=self._model.device)
        network: Any = self._model.network
        tokens = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            use_cache=True,
            past_key_values=head,
            eos_token_id=list(self._model.ends),
            pad_token_id=self._model.ends[0],
            **settings,
        )
        written: list[int] = tokens[0, ids.shape[1] :].tolist()
        return written


def _mask(matcher: PlanMatcher, choices: Sequence[int] | None) -> Any:
    """Return a logits processor that leaves the admitted tokens, or the next of ``choices``.

    It maps ids (1, length) and scores (1, vocabulary) to scores, the others at minus infinity.
    """
    import torch

    script: Iterator[int] | None = None if choices is None else iter(choices)
    started = False

    def process(input_ids: Any, scores: Any) -> Any:
        nonlocal started
        if started:
            matcher.consume(int(input_ids[0, -1]))
        started = True
        mask = torch.from_numpy(matcher.mask(scores.shape[-1])).to(scores.device)
        admitted = scores.masked_fill(~mask, float("-inf"))
        if script is None:
            return admitted
        token = next(script)
        chosen = torch.full_like(admitted, float("-inf"))
        chosen[0, token] = admitted[0, token]
        return chosen

    return process


class Systems:
    """The systems with one model, with and without the KV cache of ``head``, the prompts' start."""

    def __init__(self, model: LanguageModel, grammar: PlanGrammar, head: Sequence[int]) -> None:
        self._model = model
        self._grammar = grammar
        self._generation = Generation(model)
        self._states = self._generation.head_states(head)
        self._keeping, self._reading = Decoder(model), Decoder(model, head_bytes=0)

    def named(self) -> dict[str, Callable[[Task, PromptTokens], WrittenPlan]]:
        """Return the systems that write a task's plan, by their names."""

        def masked(task: Task, prompt: PromptTokens, *, cached: bool) -> WrittenPlan:
            return self._masked(task.request, prompt, task.masked, cached=cached)

        ways: dict[str, Callable[..., WrittenPlan]] = {
            PLAIN: self._plain,
            MASKED: masked,
            OWN: self.decoded,
        }
        return {
            way + end: partial(write, cached=bool(end))
            for way, write in ways.items()
            for end in ("", KEPT)
        }

    def decoded(self, task: Task, prompt: PromptTokens, *, cached: bool = True) -> WrittenPlan:
        """Write a task's plan with Casewright's decoder."""
        return self._own(task.request, prompt, task.forced, cached=cached)

    def of_own_choice(
        self, requests: Sequence[PlanRequest], prompts: Sequence[PromptTokens], store: CaseStore
    ) -> dict[str, Callable[[int], WrittenPlan]]:
        """Return the systems that write a trained model's own choice, by a request's number.

        The draft is the case planner's plan; its time is part of the plan's.
        """
        planner = CasePlanner(store)

        def draft(number: int) -> str:
            return str(planner.plan(requests[number]).plan)

        return {
            GENERATED: lambda at: self._masked(requests[at], prompts[at]),
            UNDRAFTED: lambda at: self._own(requests[at], prompts[at]),
            DRAFTED: lambda at: self._own(requests[at], prompts[at], draft=partial(draft, at)),
        }

    def _plain(self, task: Task, prompt: PromptTokens, *, cached: bool) -> WrittenPlan:
        # The copy is no part of the time: a cache could be cut back instead.
        head = deepcopy(self._states) if cached else None
        count = len(task.masked.tokens)
        tokens, spent = timed(
            lambda: self._generation.plain(prompt, count, head), self._model.device
        )
        return self._plan(tokens, len(tokens), prompt, spent, cached=cached)

    def _masked(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        cached: bool = True,
    ) -> WrittenPlan:
        head, choices = (
            deepcopy(self._states) if cached else None,
            script.choices if script else None,
        )
        tokens, spent = timed(
            lambda: self._generation.masked(prompt, self._grammar.plan(request), head, choices),
            self._model.device,
        )
        # Its last step ends the plan.
        return self._plan(tokens, len(tokens) + 1, prompt, spent, cached=cached)

    def _own(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        cached: bool = True,
        draft: Callable[[], str] = str,
    ) -> WrittenPlan:
        decoder = self._keeping if cached else self._reading
        choose = script.choose() if script else greedy
        written, spent = timed(
            lambda: decoder.write(
                prompt, self._grammar.plan(request), choose=choose, draft=draft()
            ),
            self._model.device,
        )
        reused = written.head_reused
        return self._plan(list(written.tokens), written.model_steps, prompt, spent, cached=reused)

    def _plan(
        self, tokens: list[int], steps: int, prompt: PromptTokens, spent: float, *, cached: bool
    ) -> WrittenPlan:
        read = len(prompt.tail) + (0 if cached else len(prompt.head))
        return WrittenPlan(self._model.decode(tokens), len(tokens), steps, read, spent)
