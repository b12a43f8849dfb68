"""One plan being written: which tokens may come next, and which must."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import GrammarError

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from numpy.typing import NDArray


def compiled(tokenizer: LLTokenizer, grammar: str) -> LLMatcher:
    """Compile a grammar in llguidance's Lark.

    Raises:
        GrammarError: It cannot be compiled.
    """
    from llguidance import LLMatcher

    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0)
    _check(matcher)
    return matcher


class PlanMatcher:
    """Follows the tokens of one plan; for one thread at a time.

    Every method raises ``GrammarError`` where a limit of the library is met, or where no token can
    go on.

    Args:
        matcher: Of a compiled grammar, at its start; is used up.
        tokenizer: The one that it was compiled for.
    """

    def __init__(self, matcher: LLMatcher, tokenizer: LLTokenizer) -> None:
        self._matcher = matcher
        self._ends = np.array(tokenizer.eos_tokens, dtype=np.intp)
        self._tokens = range(tokenizer.vocab_size)
        self._allowed: NDArray[np.intp] | None = None

    def copy(self) -> PlanMatcher:
        """Return a matcher of the same plan at the same place, which goes on by itself."""
        made = copy(self)
        made._matcher = self._matcher.deep_copy()
        return made

    def forced(self) -> list[int]:
        """Consume and return the tokens that nothing else can follow; none where there is a choice.

        Ids of tokens, in their order. Where the plan is whole, its end is not among them.
        """
        forced: list[int] = []
        while not self.finished:
            tokens = self._matcher.compute_ff_tokens()
            _check(self._matcher)
            if not tokens:
                allowed = self.allowed()
                if len(allowed) > 1:
                    break
                tokens = [int(allowed[0])]
            self._consume(tokens)
            forced += tokens
        return forced

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of the tokens that may come next, ascending; at least one.

        Ends of a sequence are among them where the plan may end.
        """
        if self._allowed is None:
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            _check(self._matcher)
            self._allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        return self._allowed

    def mask(self, size: int) -> NDArray[np.bool_]:
        """Return which of the tokens below ``size`` may come next, as booleans of shape (size,)."""
        allowed = self.allowed()
        mask = np.zeros(size, dtype=np.bool_)
        mask[allowed[allowed < size]] = True
        return mask

    def consume(self, token: int) -> None:
        """Go on with a token.

        Raises:
            GrammarError: It cannot come here; the matcher is as it was before.
        """
        if token not in self._tokens:
            raise GrammarError(f"There is no token {token}. Choose one of the allowed tokens.")
        self._consume([token])

    @property
    def finished(self) -> bool:
        """Whether nothing can follow: the plan is whole."""
        if self._matcher.is_stopped():
            _check(self._matcher)
            return True
        return self.accepting and bool(np.isin(self.allowed(), self._ends).all())

    @property
    def accepting(self) -> bool:
        """Whether the plan may end here."""
        return bool(self._matcher.is_accepting())

    def _consume(self, tokens: Sequence[int]) -> None:
        taken = self._matcher.try_consume_tokens(list(tokens))
        _check(self._matcher)
        if taken < len(tokens):
            raise GrammarError(
                f"Token {tokens[taken]} cannot come next. Choose one of the allowed tokens."
            )
        self._allowed = None


def _check(matcher: LLMatcher) -> None:
    if not matcher.is_error():
        return
    why = matcher.get_error().strip().partition("\n")[0]
    if why.startswith("NoExtension"):
        raise GrammarError(
            "No token of this tokenizer can go on with the plan. "
            "Use a model whose tokens can write every byte."
        )
    raise GrammarError(
        f"The plan cannot be written by a grammar: {why[:200]}. "
        "Give fewer tools or a shorter question, or use another planner."
    )
