"""One plan in the making: what is chosen, and what is written without a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.choice import Choose
from casewright.planner.decoding.draft import Draft
from casewright.planner.decoding.limits import Limits, check_positions
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import TokenModel


class Writing:
    """Writes a plan token by token, whoever computes the logits.

    Tokens that nothing else could stand for follow at once: they take no model step.

    Args:
        model: Whose tokens.
        matcher: Of the plan.
        prompt_tokens: Length of what the model has been given before.
        limits: Bounds of the plan.
        choose: Picks a token.

    Attributes:
        ended: Whether the plan is at its end.
    """

    def __init__(
        self,
        model: TokenModel,
        matcher: Matcher,
        prompt_tokens: int,
        limits: Limits,
        choose: Choose,
    ) -> None:
        self._model = model
        self._matcher = matcher
        self._prompt_tokens = prompt_tokens
        self._limits = limits
        self._choose = choose
        self._tokens: list[int] = []
        self._forced = 0
        self._choices = 0
        self.ended = False

    def begin(self) -> list[int]:
        """Write what every plan begins with; return its tokens.

        Raises:
            DecodingError: A limit is met, or the sequence is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        return self._followed([])

    def proposed(self, draft: Draft) -> list[list[int]]:
        """Return what a draft proposes to write next, within the limits; see ``Draft``."""
        most = self._limits.tokens
        if self._model.positions is not None:
            most = min(most, self._model.positions - self._prompt_tokens)
        return draft.proposed(self._matcher, self._tokens, most - len(self._tokens))

    def go_on(self, logits: NDArray[np.float32]) -> list[int]:
        """Choose the next token, by logits of shape ``(vocabulary,)``; return what was written.

        Raises:
            DecodingError: A limit is met, or the sequence is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        self._choices += 1
        token = self._choose(logits, self._matcher)
        if token in self._model.ends:
            self.ended = True
            return []
        self._matcher.consume(token)
        return self._followed([token])

    def written(self, *, head_reused: bool, drafted: int = 0) -> Written:
        """Return the plan; ``drafted`` of its choices took no step."""
        return Written(
            tokens=tuple(self._tokens),
            model_steps=self._choices - drafted,
            forced=self._forced,
            drafted=drafted,
            prompt_tokens=self._prompt_tokens,
            head_reused=head_reused,
        )

    def _followed(self, new: list[int]) -> list[int]:
        forced = self._matcher.forced()
        self._forced += len(forced)
        new = [*new, *forced]
        self._tokens += new
        self.ended = self._matcher.finished
        self._limits.check_tokens(len(self._tokens))
        check_positions(self._model, self._prompt_tokens + len(self._tokens))
        return new
