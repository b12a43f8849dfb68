"""Unconstrained decoding: the model may write any text, until its end token.

Measurements use this decoding as a control, to show what a grammar guarantees, for example that a
plan calls only known tools.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from casewright.errors import GrammarError
from casewright.planner.language_model import LanguageModel


def text_and_end_tokens(model: LanguageModel) -> NDArray[np.intp]:
    """Return the ids of all text tokens and end tokens, ascending.

    Other special tokens, and ids that have a logit but no token, are left out.
    """
    tokenizer = model.grammar_tokenizer
    ids = range(tokenizer.vocab_size)
    allowed = [id_ for id_ in ids if id_ in model.ends or not tokenizer.is_special_token(id_)]
    return np.array(allowed, dtype=np.intp)


@dataclass(slots=True, eq=False)
class FreeMatcher:
    """Matcher that allows every text; ``tokens`` are the text's tokens so far."""

    _allowed_ids: NDArray[np.intp]
    tokens: list[int] = field(default_factory=list)

    def copy(self) -> FreeMatcher:
        """Return an independent matcher at the same position."""
        return FreeMatcher(self._allowed_ids, [*self.tokens])

    def consume_forced(self) -> list[int]:
        """Return no tokens, since the model can always choose."""
        return []

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of all text tokens and end tokens, ascending."""
        return self._allowed_ids

    def consume(self, token: int) -> None:
        """Advance by a token; raise ``GrammarError`` if it is not allowed."""
        index = int(np.searchsorted(self._allowed_ids, token))
        if index == len(self._allowed_ids) or self._allowed_ids[index] != token:
            raise GrammarError(f"Token {token} is not text. Choose one of the allowed tokens.")
        self.tokens.append(token)

    @property
    def finished(self) -> bool:
        """Always False, since any text can be continued."""
        return False
