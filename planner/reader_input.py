"""Tokenises questions for the reader's network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.spans import Word, normalized, words_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum number of input tokens; longer input is truncated.
MAX_TOKENS = 192
#: Maximum number of sub-queries of a message, and of literal arguments ("slots") of a sub-query.
MAX_SUB_QUERIES, MAX_SLOTS = 6, 4
#: The network reads a context value only if it is one word of at most this many characters.
MAX_VALUE_CHARACTERS = 20
#: Adjacent words of the question: the indices of the first and the last word.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """Tokens of a question and its context.

    Attributes:
        ids: Token ids of question and context.
        types: 0 for the question's tokens, 1 for the context's tokens.
        words: The words of the question that were not truncated.
        first_tokens: For each word, the position of its first token in ``ids``.
        last_tokens: For each word, the position of its last token in ``ids``.
    """

    ids: list[int]
    types: list[int]
    question: str
    words: list[Word]
    first_tokens: list[int]
    last_tokens: list[int]

    def find(self, text: str) -> Span | None:
        """Return a text's first occurrence in the question, ignoring case, or ``None``."""
        text_words = [normalized(word.text) for word in words_of(text)]
        question_words = [normalized(word.text) for word in self.words]
        for start in range(len(question_words) - len(text_words) + 1):
            if text_words and question_words[start : start + len(text_words)] == text_words:
                return start, start + len(text_words) - 1
        return None

    def text(self, span: Span) -> str:
        """Return the question's text from the span's first word to its last word."""
        return self.question[self.words[span[0]].start : self.words[span[1]].end]

    def token_range(self, span: Span) -> tuple[int, int]:
        """Return the positions of a span's first and last token in ``ids``."""
        return self.first_tokens[span[0]], self.last_tokens[span[1]]

    def token_weights(self, spans: Sequence[Span | None], width: int) -> NDArray[np.float32]:
        """Return an array (width,): the tokens of the spans share a weight of 1, others have 0."""
        weights = np.zeros(width, dtype=np.float32)
        for first, last in map(self.token_range, filter(None, spans)):
            weights[first : last + 1] = 1.0
        total = weights.sum()
        return weights / total if total else weights


def read_input(tokenizer: Tokenizer, question: str, context: Mapping[str, Any]) -> ReaderInput:
    """Tokenise a question and its context; the longer of the two texts may be truncated."""
    encoded = tokenizer.encode(question, _context_text(context))
    # For each token of the question: its position in the input, and its start and end in the text.
    tokens = [
        (position, start, end)
        for position, (sequence, (start, end)) in enumerate(
            zip(encoded.sequence_ids, encoded.offsets, strict=True)
        )
        if sequence == 0 and end > start
    ]
    words, first_tokens, last_tokens, first = [], [], [], 0
    for word in words_of(question):
        while first < len(tokens) and tokens[first][2] <= word.start:
            first += 1
        end = first
        while end < len(tokens) and tokens[end][1] < word.end:
            end += 1
        if end == first:
            # This word and the later words were truncated.
            break
        words.append(word)
        first_tokens.append(tokens[first][0])
        last_tokens.append(tokens[end - 1][0])
    return ReaderInput(encoded.ids, encoded.type_ids, question, words, first_tokens, last_tokens)


def _context_text(context: Mapping[str, Any]) -> str:
    present = {name: value for name, value in sorted(context.items()) if value is not None}
    texts = []
    for name, value in present.items():
        is_word = isinstance(value, str) and value.isalpha()
        shows_value = is_word and len(value) <= MAX_VALUE_CHARACTERS
        texts.append(f"{name} {value}" if shows_value else name)
    return ", ".join(texts) or "nothing"


def padded(inputs: Sequence[ReaderInput]) -> tuple[NDArray[np.int64], ...]:
    """Return the ids, types and masks of n inputs: three arrays (n, length of the longest)."""
    shape = len(inputs), max(len(encoded.ids) for encoded in inputs)
    ids, types, mask = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for row, encoded in enumerate(inputs):
        ids[row, : len(encoded.ids)] = encoded.ids
        types[row, : len(encoded.ids)] = encoded.types
        mask[row, : len(encoded.ids)] = 1
    return ids, types, mask
