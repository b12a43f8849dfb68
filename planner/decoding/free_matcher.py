"""Unconstrained decoding: the model may write any text, until its end token.

It is the control that shows what a grammar guarantees, such as that a plan names only known tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import GrammarError

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


def text_tokens(model: LanguageModel) -> NDArray[np.intp]:
    """Return the ids of all text tokens and end tokens, ascending.

    Other special tokens, and output rows of the network without a token, are left out.
    """
    tokenizer = model.grammar_tokenizer
    ends = frozenset(model.ends)
    ids = range(tokenizer.vocab_size)
    allowed = [id_ for id_ in ids if id_ in ends or not tokenizer.is_special_token(id_)]
    return np.array(allowed, dtype=np.intp)


class FreeMatcher:
    """Allows every text; see ``Matcher``. ``tokens`` has the tokens so far."""

    def __init__(self, allowed: NDArray[np.intp]) -> None:
        self._allowed = allowed
        self.tokens: list[int] = []

    def copy(self) -> FreeMatcher:
        """Return an independent matcher at the same position."""
        matcher = FreeMatcher(self._allowed)
        matcher.tokens = list(self.tokens)
        return matcher

    def forced(self) -> list[int]:
        """Return no tokens, since the model can always choose."""
        return []

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of all text tokens and end tokens, ascending."""
        return self._allowed

    def consume(self, token: int) -> None:
        """Advance by a token; raise ``GrammarError`` if it is not allowed."""
        index = int(np.searchsorted(self._allowed, token))
        if index == len(self._allowed) or self._allowed[index] != token:
            raise GrammarError(f"Token {token} is not text. Choose one of the allowed tokens.")
        self.tokens.append(token)

    @property
    def finished(self) -> bool:
        """Always False, since a text can always continue."""
        return False
