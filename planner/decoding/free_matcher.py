"""Writing without a grammar: any text, until the model itself ends it.

It is how a planner is measured on what a grammar makes true by construction, such as that no plan
names a tool which is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import GrammarError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from casewright.planner.language_model import TokenModel


def text_tokens(model: TokenModel) -> NDArray[np.intp]:
    """Return the ids of the tokens that stand for text, and of those that end one, ascending.

    Other special tokens, and numbers of the network that no token has, would make what is written
    something else than text.
    """
    tokenizer = model.grammar_tokenizer
    ends = frozenset(model.ends)
    ids = range(tokenizer.vocab_size)
    kept = [id_ for id_ in ids if id_ in ends or not tokenizer.is_special_token(id_)]
    return np.array(kept, dtype=np.intp)


class FreeMatcher:
    """Admits every text; see ``Matcher``.

    Attributes:
        tokens: What was written so far, also where decoding was stopped by a limit.

    Args:
        allowed: See ``text_tokens``.
    """

    def __init__(self, allowed: NDArray[np.intp]) -> None:
        self._allowed = allowed
        self.tokens: list[int] = []

    def copy(self) -> FreeMatcher:
        """Return a matcher at the same place, which goes on by itself."""
        made = FreeMatcher(self._allowed)
        made.tokens = list(self.tokens)
        return made

    def forced(self) -> list[int]:
        """Return nothing: there always is a choice."""
        return []

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of all tokens of text, and of those that end it, ascending."""
        return self._allowed

    def consume(self, token: int) -> None:
        """Go on with a token.

        Raises:
            GrammarError: It is none of the allowed ones.
        """
        at = int(np.searchsorted(self._allowed, token))
        if at == len(self._allowed) or self._allowed[at] != token:
            raise GrammarError(f"Token {token} is no text. Choose one of the allowed tokens.")
        self.tokens.append(token)

    @property
    def finished(self) -> bool:
        """Whether nothing can follow: a text may always go on."""
        return False
