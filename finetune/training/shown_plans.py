"""Which tokens of a prompt are plans: of fixed examples and of plan cases, each below a question.

A plan that a prompt shows is a plan to learn from as well: what stands before it is the same
toolbox, its own question, and fewer examples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from casewright.planner.language_model import LanguageModel

#: With the line's end after the last step, which says that there is no other.
_SHOWN = re.compile(rb"(?<=\n)Plan:\n((?:s[0-9]+ = [^\n]*(?:\n|$))+)")


def shown_plans(tokens: Sequence[int], model: LanguageModel) -> list[int]:
    """Return for each token of a prompt's part 1 where it begins inside a plan, else 0."""
    parts = [_bytes_of(model, token) for token in tokens]
    inside = bytearray(sum(map(len, parts)) + 1)
    for found in _SHOWN.finditer(b"".join(parts)):
        start, end = found.span(1)
        inside[start:end] = b"\1" * (end - start)
    mask, place = [], 0
    for part in parts:
        mask.append(int(inside[place]))
        place += len(part)
    return mask


@lru_cache(maxsize=1 << 18)
def _bytes_of(model: LanguageModel, token: int) -> bytes:
    return bytes(model.grammar_tokenizer.decode_bytes([token]))
