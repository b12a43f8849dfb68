"""The ways to write a plan that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from casewright.bench.decoding.generate import Generation
from casewright.bench.decoding.tasks import Task
from casewright.bench.decoding.turns import timed
from casewright.planner.decoding import Decoder

if TYPE_CHECKING:
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel, PromptTokens

PLAIN, MASKED, OWN = "generate", "generate, masked", "casewright"
#: What a system's name ends with where the key/value states of the prompt's head are given.
KEPT = ", head kept"


@dataclass(frozen=True, slots=True)
class Made:
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


#: Writes the plan of a task behind a prompt.
Write = Callable[[Task, "PromptTokens"], Made]


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

    def named(self) -> Iterable[tuple[str, Write]]:
        """Return the systems with their names."""
        return (
            (PLAIN, partial(self._plain, kept=False)),
            (PLAIN + KEPT, partial(self._plain, kept=True)),
            (MASKED, partial(self._masked, kept=False)),
            (MASKED + KEPT, partial(self._masked, kept=True)),
            (OWN, partial(self._own, decoder=self._reading)),
            (OWN + KEPT, self.own),
        )

    def own(self, task: Task, prompt: PromptTokens) -> Made:
        """Write by this project's decoder, which keeps the head."""
        return self._own(task, prompt, self._keeping)

    def _plain(self, task: Task, prompt: PromptTokens, *, kept: bool) -> Made:
        # The copy is no part of the time: a cache could be cut back instead.
        head = deepcopy(self._states) if kept else None
        count = len(task.masked.tokens)
        tokens, spent = timed(
            self._model.device, lambda: self._generation.plain(prompt, count, head)
        )
        return self._made(tokens, len(tokens), prompt, spent, kept=kept)

    def _masked(self, task: Task, prompt: PromptTokens, *, kept: bool) -> Made:
        head = deepcopy(self._states) if kept else None

        def write() -> list[int]:
            matcher = self._grammar.plan(task.request)
            return self._generation.masked(prompt, matcher, head, task.masked.choices)

        tokens, spent = timed(self._model.device, write)
        # Its last step ends the plan.
        return self._made(tokens, len(tokens) + 1, prompt, spent, kept=kept)

    def _own(self, task: Task, prompt: PromptTokens, decoder: Decoder) -> Made:
        choose = task.forced.choose()
        written, spent = timed(
            self._model.device,
            lambda: decoder.write(prompt, self._grammar.plan(task.request), choose=choose),
        )
        steps, kept = written.model_steps, written.head_reused
        return self._made(list(written.tokens), steps, prompt, spent, kept=kept)

    def _made(
        self, tokens: list[int], steps: int, prompt: PromptTokens, spent: float, *, kept: bool
    ) -> Made:
        read = len(prompt.tail) + (0 if kept else len(prompt.head))
        return Made(self._model.decode(tokens), len(tokens), steps, read, spent)
