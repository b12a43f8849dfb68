"""What the reader's network sees of a question: tokens, and which words they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.literals import Word, words_of
from casewright.planner.spans import normalized

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Longest input in tokens; of a longer question the end is not read.
MAX_TOKENS = 192
#: Texts in the context that are shown as they are are at most this long, and hold letters alone.
SHOWN_VALUE = 20


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """A tokenised question with what is known beside it.

    Attributes:
        ids: Token ids, question and context as a pair.
        types: 0 for the question's tokens, 1 for the context's.
        question: The question.
        words: The question's words that were read.
        first: Position of each word's first token.
        last: Position of each word's last token.
    """

    ids: list[int]
    types: list[int]
    question: str
    words: list[Word]
    first: list[int]
    last: list[int]

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the first and last word of a span of the question; ``None`` if it is none."""
        wanted = [normalized(word.text) for word in words_of(text)]
        own = [normalized(word.text) for word in self.words]
        for start in range(len(own) - len(wanted) + 1):
            if wanted and own[start : start + len(wanted)] == wanted:
                return start, start + len(wanted) - 1
        return None

    def text(self, span: tuple[int, int]) -> str:
        """Return the words from the first to the last, as they stand in the question."""
        return self.question[self.words[span[0]].start : self.words[span[1]].end]

    def coverage(self, spans: Sequence[tuple[int, int] | None], width: int) -> NDArray[np.float32]:
        """Return weights over tokens, array (width,): even over the spans, zeros if none."""
        weights = np.zeros(width, dtype=np.float32)
        for span in spans:
            if span is not None:
                weights[self.first[span[0]] : self.last[span[1]] + 1] = 1.0
        total = weights.sum()
        return weights / total if total else weights


def read_input(tokenizer: Tokenizer, question: str, context: Mapping[str, Any]) -> ReaderInput:
    """Tokenise a question and its context; the tokenizer cuts the longer of them."""
    encoded = tokenizer.encode(question, context_text(context))
    words, first, last = words_of(question), [], []
    spans = [
        (place, start, end)
        for place, (part, (start, end)) in enumerate(
            zip(encoded.sequence_ids, encoded.offsets, strict=True)
        )
        if part == 0 and end > start
    ]
    read, at = [], 0
    for word in words:
        while at < len(spans) and spans[at][2] <= word.start:
            at += 1
        here = at
        while here < len(spans) and spans[here][1] < word.end:
            here += 1
        if here == at:
            break
        read.append(word)
        first.append(spans[at][0])
        last.append(spans[here - 1][0])
    return ReaderInput(encoded.ids, encoded.type_ids, question, read, first, last)


def context_text(context: Mapping[str, Any]) -> str:
    """Say what is known beside the question: names of fields, with values that are plain words."""
    shown = []
    for name, value in sorted(context.items()):
        if value is None:
            continue
        plain = isinstance(value, str) and value.isalpha() and len(value) <= SHOWN_VALUE
        shown.append(f"{name} {value}" if plain else name)
    return ", ".join(shown) or "nothing"


def padded(inputs: Sequence[ReaderInput]) -> tuple[NDArray[np.int64], ...]:
    """Return ids, types and mask of n inputs, each an array (n, longest)."""
    width = max(len(one.ids) for one in inputs)
    ids, types, mask = (np.zeros((len(inputs), width), dtype=np.int64) for _ in range(3))
    for row, one in enumerate(inputs):
        ids[row, : len(one.ids)] = one.ids
        types[row, : len(one.ids)] = one.types
        mask[row, : len(one.ids)] = 1
    return ids, types, mask
