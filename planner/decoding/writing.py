"""A plan during decoding, with its chosen and its forced tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.draft import propose
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher
from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Written:
    """Tokens of a decoded plan, with counts.

    Attributes:
        tokens: Tokens of the plan, without the end token.
        model_steps: Number of steps; in each, the model reads tokens and chooses one token. The
            first step reads the prompt's tail, in several forward passes if the tail is long.
        forced: Number of tokens that the grammar forced.
        drafted: Number of choices that the draft had proposed. Each of them saved a step.
            Forced tokens after these choices are not counted here.
        prompt_tokens: Number of tokens of the prompt, prefix included.
        prefix_cached: True if the key/value states of the prefix were cached.
    """

    tokens: tuple[int, ...]
    model_steps: int
    forced: int
    drafted: int
    prompt_tokens: int
    prefix_cached: bool


@dataclass(slots=True, eq=False)
class PartialPlan:
    """Plan during decoding: the model chooses some tokens, and the grammar forces other tokens."""

    _model: LanguageModel
    _matcher: Matcher
    _prompt_length: int
    _limits: DecodingLimits
    _choose: Choose
    is_ended: bool = False
    _tokens: list[int] = field(default_factory=list)
    _forced_count: int = 0
    _choice_count: int = 0

    def begin(self) -> list[int]:
        """Write the forced tokens at the start of the plan; return them."""
        return self._append_with_forced([])

    def extend(self, logits: NDArray[np.float32]) -> list[int]:
        """Choose a token from logits ``(vocabulary,)``; return it with the forced tokens after it.

        For errors see ``Decoder.write``.
        """
        self._choice_count += 1
        token = self._choose(logits, self._matcher)
        if token in self._model.ends:
            self.is_ended = True
            return []
        self._matcher.consume(token)
        return self._append_with_forced([token])

    def proposals(self, draft: str) -> list[list[int]]:
        """Return the draft's proposals for the next choices; see ``propose``."""
        limit = self._limits.tokens
        if self._model.context_length is not None:
            limit = min(limit, self._model.context_length - self._prompt_length)
        return propose(self._model, draft, self._matcher, self._tokens, limit - len(self._tokens))

    def written(self, *, prefix_cached: bool, drafted_count: int = 0) -> Written:
        """Return the plan; for ``drafted_count`` see ``Written.drafted``."""
        return Written(
            tokens=tuple(self._tokens),
            model_steps=self._choice_count - drafted_count,
            forced=self._forced_count,
            drafted=drafted_count,
            prompt_tokens=self._prompt_length,
            prefix_cached=prefix_cached,
        )

    def _append_with_forced(self, tokens: list[int]) -> list[int]:
        forced = self._matcher.consume_forced()
        self._forced_count += len(forced)
        tokens = [*tokens, *forced]
        self._tokens += tokens
        self.is_ended = self._matcher.finished
        self._limits.check_tokens(self._model, self._prompt_length, len(self._tokens))
        return tokens
