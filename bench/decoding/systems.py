"""The systems that write a plan: transformers' ``generate``, plain or masked, and the decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import slow_progress, timed
from casewright.bench.scripts import Script, Task
from casewright.planner import AnnotatedQuery, CasePlanner, render_prompt
from casewright.planner.decoding import Decoder, greedy

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.grammar import PlanGrammar, PlanMatcher
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.stores import CaseStore
    from casewright.tools import Toolbox

PLAIN, MASKED, OWN = "generate", "generate, masked", "casewright"
#: The end of a system's name where the key/value states of the prompt's head are given.
KEPT = ", head kept"
#: Names of the systems that write the model's own choice.
CHOICE = "own choice: "
DRAFTED, UNDRAFTED = f"{CHOICE}{OWN}, drafted{KEPT}", f"{CHOICE}{OWN}{KEPT}"
GENERATED = f"{CHOICE}{MASKED}{KEPT}"
#: Most tokens that are written under a mask; steps of a plan without a script, which random weights
#: would not end earlier.
MOST, STEPS = 1024, 2


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A plan that a system wrote.

    Attributes:
        text: The plan; nonsense where no grammar was followed.
        plan_tokens: Tokens that were written, without the one that ends them.
        model_steps: Calls of the network that a token was taken from.
        prompt_tokens: Tokens that were read before.
        milliseconds: From the request to the tokens, its grammar included.
    """

    text: str
    plan_tokens: int
    model_steps: int
    prompt_tokens: int
    milliseconds: float


class Generation:
    """Writes with ``generate``, greedily, with its dynamic cache; ``head`` is states to add to."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def head_states(self, head: Sequence[int]) -> Any:
        """Return a cache with the key/value states of a prompt's head."""
        import torch
        from transformers import DynamicCache

        network: Any = self._model.network
        cache = DynamicCache(config=network.config)
        ids = torch.tensor([list(head)], device=self._model.device)
        with torch.no_grad():
            network(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cache

    def plain(self, prompt: PromptTokens, tokens: int, head: Any = None) -> list[int]:
        """Return so many tokens, whichever they are."""
        return self._written(prompt, head, min_new_tokens=tokens, max_new_tokens=tokens)

    def masked(
        self,
        prompt: PromptTokens,
        matcher: PlanMatcher,
        head: Any = None,
        choices: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the tokens of a text that a grammar admits, without the one that ends it.

        Args:
            prompt: The prompt.
            matcher: Of the grammar; it is used up.
            head: States of the prompt's head, which ``generate`` adds to.
            choices: The token of each step, in place of the likeliest of the allowed ones.
        """
        from transformers import LogitsProcessorList

        processors = LogitsProcessorList([_mask(matcher, choices)])
        written = self._written(prompt, head, max_new_tokens=MOST, logits_processor=processors)
        return [token for token in written if token not in self._model.ends]

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
    """Return a logits processor of one row that leaves the admitted tokens, or the chosen one.

    It maps ids (1, length) and scores (1, vocabulary) to scores, all others at minus infinity.
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
    """Every way to write a plan with one model, with and without the head's key/value states.

    Args:
        model: Writes.
        grammar: Of its plans.
        head: The tokens that all prompts start with.
    """

    def __init__(self, model: LanguageModel, grammar: PlanGrammar, head: Sequence[int]) -> None:
        self._model = model
        self._grammar = grammar
        self._generation = Generation(model)
        self._states = self._generation.head_states(head)
        self._keeping, self._reading = Decoder(model), Decoder(model, head_bytes=0)

    def named(self) -> dict[str, Callable[[Task, PromptTokens], WrittenPlan]]:
        """Return the systems that write a task's plan, with their names."""

        def masked(task: Task, prompt: PromptTokens, *, kept: bool) -> WrittenPlan:
            return self._masked(task.request, prompt, task.masked, kept=kept)

        ways: dict[str, Callable[..., WrittenPlan]] = {
            PLAIN: self._plain,
            MASKED: masked,
            OWN: self.own,
        }
        return {
            way + end: partial(write, kept=bool(end))
            for way, write in ways.items()
            for end in ("", KEPT)
        }

    def own(self, task: Task, prompt: PromptTokens, *, kept: bool = True) -> WrittenPlan:
        """Write a task's plan by this project's decoder."""
        return self._own(task.request, prompt, task.forced, kept=kept)

    def of_own_choice(
        self, requests: Sequence[PlanRequest], prompts: Sequence[PromptTokens], store: CaseStore
    ) -> dict[str, Callable[[int], WrittenPlan]]:
        """Return the systems that write a trained model's own choice, by a request's number.

        The draft is the plan that the case planner makes of the store, none of whose cases is the
        query's or a neighbour's; its time is part of the plan's.
        """
        planner = CasePlanner(store)

        def draft(number: int) -> str:
            return str(planner.plan(requests[number]).plan)

        return {
            GENERATED: lambda at: self._masked(requests[at], prompts[at]),
            UNDRAFTED: lambda at: self._own(requests[at], prompts[at]),
            DRAFTED: lambda at: self._own(requests[at], prompts[at], draft=partial(draft, at)),
        }

    def _plain(self, task: Task, prompt: PromptTokens, *, kept: bool) -> WrittenPlan:
        # The copy is no part of the time: a cache could be cut back instead.
        head = deepcopy(self._states) if kept else None
        count = len(task.masked.tokens)
        tokens, spent = timed(
            lambda: self._generation.plain(prompt, count, head), self._model.device
        )
        return self._plan(tokens, len(tokens), prompt, spent, kept=kept)

    def _masked(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        kept: bool = True,
    ) -> WrittenPlan:
        head, choices = deepcopy(self._states) if kept else None, script.choices if script else None
        tokens, spent = timed(
            lambda: self._generation.masked(prompt, self._grammar.plan(request), head, choices),
            self._model.device,
        )
        # Its last step ends the plan.
        return self._plan(tokens, len(tokens) + 1, prompt, spent, kept=kept)

    def _own(
        self,
        request: PlanRequest,
        prompt: PromptTokens,
        script: Script | None = None,
        *,
        kept: bool = True,
        draft: Callable[[], str] = str,
    ) -> WrittenPlan:
        decoder = self._keeping if kept else self._reading
        choose = script.choose() if script else greedy
        written, spent = timed(
            lambda: decoder.write(
                prompt, self._grammar.plan(request), choose=choose, draft=draft()
            ),
            self._model.device,
        )
        reused = written.head_reused
        return self._plan(list(written.tokens), written.model_steps, prompt, spent, kept=reused)

    def _plan(
        self, tokens: list[int], steps: int, prompt: PromptTokens, spent: float, *, kept: bool
    ) -> WrittenPlan:
        read = len(prompt.tail) + (0 if kept else len(prompt.head))
        return WrittenPlan(self._model.decode(tokens), len(tokens), steps, read, spent)


def compare_greedy(
    model: LanguageModel,
    grammar: PlanGrammar,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
) -> dict[str, int]:
    """Return how the plans of the decoder and of masked ``generate`` differ, both of them greedy.

    Both choose the likeliest token that the grammar admits. They part where the grammar forces a
    text: the decoder writes it in tokens of its own, without a model step, where the model may have
    cut it another way. From there on the model has read other tokens, and may choose otherwise.

    Args:
        model: Best in float32: rounded numbers are equal more often.
        grammar: Of its plans.
        toolbox: The tools.
        queries: To plan for.

    Returns:
        How many ``plans`` were compared, have the ``same_tokens``, are the ``same_text``; and how
        many first differ in a forced text (``explained``) or elsewhere (``unexplained``).
    """
    generation, decoder = Generation(model), Decoder(model)
    states, same, ends = None, 0, []
    with slow_progress("Decoding greedily", len(queries)) as advance:
        for query in queries:
            request = replace(query.record.request(toolbox), max_steps=STEPS)
            prompt = model.encode(render_prompt(request))
            if states is None:
                states = generation.head_states(prompt.head)
            own = decoder.write(prompt, grammar.plan(request)).tokens
            other = generation.masked(prompt, grammar.plan(request), deepcopy(states))
            same += model.decode(own) == model.decode(other)
            ends.append(first_difference(model, grammar, request, own, other))
            advance(1)
    return {
        "plans": len(queries),
        "same_tokens": ends.count("none"),
        "same_text": same,
        "explained": ends.count("forced"),
        "unexplained": ends.count("chosen"),
    }


def first_difference(
    model: LanguageModel,
    grammar: PlanGrammar,
    request: PlanRequest,
    own: Sequence[int],
    other: Sequence[int],
) -> str:
    """Return where the decoder's tokens first differ from others of the same request.

    Returns:
        ``none``; ``forced``, where the decoder wrote a text without an alternative and
        the other token is a piece of that text, or begins with its rest; else ``chosen``.
    """
    pairs = zip(own, other, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    if same == len(own) == len(other):
        return "none"
    if same == min(len(own), len(other)):
        return "chosen"
    decode = model.grammar_tokenizer.decode_bytes
    forced = decode(list(_forced_from(grammar.plan(request), own, same)))
    piece = decode([other[same]])
    alike = bool(forced) and (forced.startswith(piece) or piece.startswith(forced))
    return "forced" if alike else "chosen"


def _forced_from(matcher: PlanMatcher, tokens: Sequence[int], start: int) -> Sequence[int]:
    """Return the tokens from a start on that were written together without a choice."""
    at = 0
    while True:
        at += len(matcher.forced())
        if at > start:
            return tokens[start:at]
        if at == start:
            return ()
        matcher.consume(tokens[at])
        at += 1
