"""A matcher that follows a plan token by token, and returns the allowed next tokens."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from casewright.errors import GrammarError


def compile_grammar(tokenizer: LLTokenizer, grammar: str) -> LLMatcher:
    """Return a matcher for a Lark grammar; raise ``GrammarError`` if it cannot be compiled."""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0)
    _raise_error_of(matcher)
    return matcher


class PlanMatcher:
    """Tracks the tokens of one plan. Not thread-safe.

    Every method raises ``GrammarError`` if a limit of llguidance is reached, or if the plan is
    incomplete and no token can continue it.

    Args:
        matcher: llguidance's matcher at the start of the plan; it is advanced in place.
    """

    def __init__(self, matcher: LLMatcher, tokenizer: LLTokenizer) -> None:
        self._matcher = matcher
        self._end_tokens = np.array(tokenizer.eos_tokens, dtype=np.intp)
        self._token_ids = range(tokenizer.vocab_size)
        self._allowed: NDArray[np.intp] | None = None

    def copy(self) -> PlanMatcher:
        """Return an independent matcher of the same plan at the same position."""
        matcher = copy(self)
        matcher._matcher = self._matcher.deep_copy()
        return matcher

    def consume_forced(self) -> list[int]:
        """Consume and return the forced tokens, without end tokens; none if there is a choice."""
        forced: list[int] = []
        while not self.finished:
            tokens = self._matcher.compute_ff_tokens()
            _raise_error_of(self._matcher)
            if not tokens:
                allowed = self.allowed()
                if len(allowed) > 1:
                    break
                tokens = [int(allowed[0])]
            self._consume(tokens)
            forced += tokens
        return forced

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of the allowed next tokens, ascending; at least one.

        End tokens are included if the plan may end.
        """
        if self._allowed is None:
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            _raise_error_of(self._matcher)
            self._allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        return self._allowed

    def mask(self, size: int) -> NDArray[np.bool_]:
        """Return an array (size,) that is True for the allowed next tokens."""
        allowed = self.allowed()
        mask = np.zeros(size, dtype=np.bool_)
        mask[allowed[allowed < size]] = True
        return mask

    def consume(self, token: int) -> None:
        """Advance by a token; if it is not allowed, stay and raise ``GrammarError``."""
        if token not in self._token_ids:
            raise GrammarError(f"There is no token {token}. Choose one of the allowed tokens.")
        self._consume([token])

    @property
    def finished(self) -> bool:
        """True if the plan is complete: only an end token can follow."""
        if self._matcher.is_stopped():
            _raise_error_of(self._matcher)
            return True
        return self.accepting and bool(np.isin(self.allowed(), self._end_tokens).all())

    @property
    def accepting(self) -> bool:
        """True if the plan may end here; it may also continue."""
        return bool(self._matcher.is_accepting())

    def _consume(self, tokens: Sequence[int]) -> None:
        accepted = self._matcher.try_consume_tokens(list(tokens))
        _raise_error_of(self._matcher)
        if accepted < len(tokens):
            raise GrammarError(
                f"Token {tokens[accepted]} cannot come next. Choose one of the allowed tokens."
            )
        self._allowed = None


def _raise_error_of(matcher: LLMatcher) -> None:
    if not matcher.is_error():
        return
    problem = matcher.get_error().strip().partition("\n")[0]
    if problem.startswith("NoExtension"):
        raise GrammarError(
            "No token of this tokenizer can continue the plan. "
            "Use a model whose tokens can write every byte."
        )
    raise GrammarError(
        f"llguidance refuses the grammar of the plans: {problem[:200]}. "
        "Give fewer tools or a shorter question, or use another planner."
    )
