"""Which tokens of a prompt are plans: of fixed examples and of plan cases, each below a question.

A plan that a prompt shows is a plan to learn from as well: what stands before it is the same
toolbox, its own question, and fewer examples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from casewright.planner.language_model import LanguageModel

#: With the line's end after the last step, which says that there is no other.
_SHOWN = re.compile(rb"(?<=\n)Plan:\n((?:s[0-9]+ = [^\n]*(?:\n|$))+)")


class ShownPlans:
    """Finds the plans in the tokens of prompts.

    Args:
        model: Whose tokens they are.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._tokenizer = model.grammar_tokenizer
        self._texts: dict[int, bytes] = {}
        self._heads: dict[tuple[int, ...], list[int]] = {}

    def of_head(self, tokens: tuple[int, ...]) -> list[int]:
        """As ``of``, for a prompt's head; those that many examples share are looked at once."""
        if tokens not in self._heads:
            self._heads[tokens] = self.of(tokens)
        return self._heads[tokens]

    def of(self, tokens: Sequence[int]) -> list[int]:
        """Return for each token of a prompt's part 1 where it begins inside a plan, else 0."""
        parts = [self._text(token) for token in tokens]
        inside = bytearray(sum(map(len, parts)) + 1)
        for found in _SHOWN.finditer(b"".join(parts)):
            start, end = found.span(1)
            inside[start:end] = b"\1" * (end - start)
        mask, place = [], 0
        for part in parts:
            mask.append(int(inside[place]))
            place += len(part)
        return mask

    def _text(self, token: int) -> bytes:
        if token not in self._texts:
            self._texts[token] = bytes(self._tokenizer.decode_bytes([token]))
        return self._texts[token]
