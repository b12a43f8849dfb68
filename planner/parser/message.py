"""A message as the plan parser reads it: tokens, words and context fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import regex as re

from casewright.planner.parser.numbers import number_mentions
from casewright.planner.spans import WORD_RUNS, normalized

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum numbers of words and tokens of a question; longer questions are truncated.
MAX_WORDS, MAX_TOKENS = 96, 160
#: Maximum numbers of context fields, of tokens of a field, and of characters of its value.
MAX_FIELDS, MAX_FIELD_TOKENS, MAX_VALUE_CHARACTERS = 8, 14, 48
#: Ids of BERT's special tokens: CLS starts a text, SEP ends each of its parts.
CLS, SEP = 101, 102
#: Number of features of a word, in addition to its tokens; see ``_features``.
WORD_FEATURES = 6
_SENTENCE_BREAKS = frozenset(".?!;:\n")
_QUOTES_AND_COMMA = frozenset("\"'“”«»‘’,")
_IDENTIFIER_PARTS = re.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\W\d_\p{Lu}]+|\d+|\p{Lu}")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a message: its value, and the indices of its first and last word."""

    value: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Message:
    """A tokenised message.

    Attributes:
        ids: Token ids of the question, then of the context.
        types: 0 for the question's tokens, 1 for the context's.
        words: Start and end, in characters, of each word (``WORD_RUNS``) of the truncated question.
        word_of: Index of each token's word, or -1.
        field_of: Index of each token's context field, or -1.
        fields: Names of the context fields that have a value.
        features: For each word, ``WORD_FEATURES`` numbers.
        numbers: The numbers that the question mentions.
        stems: The ``stem`` of each word.
        field_stems: The stems of the words in each context field's value.
    """

    question: str
    ids: list[int]
    types: list[int]
    words: list[tuple[int, int]]
    word_of: list[int]
    field_of: list[int]
    fields: list[str]
    features: list[list[float]]
    numbers: list[Number]
    stems: list[str]
    field_stems: list[frozenset[str]]

    def text(self, first: int, last: int) -> str:
        """Return the question's text from word ``first`` to word ``last``, inclusive."""
        return self.question[self.words[first][0] : self.words[last][1]]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the indices of the first and last word of every occurrence of a text."""
        searched = normalized(text)
        length = len(WORD_RUNS.findall(searched))
        return [
            (first, first + length - 1)
            for first in range(len(self.words) - length + 1)
            if length and normalized(self.text(first, first + length - 1)) == searched
        ]


def read_message(tokenizer: Tokenizer, question: str, context: Mapping[str, Any]) -> Message:
    """Return a tokenised question with its context, both truncated to the maximum lengths."""
    words = [match.span() for match in WORD_RUNS.finditer(question)][:MAX_WORDS]
    encoded = tokenizer.encode(question, add_special_tokens=False)
    ids, word_of = [CLS], [-1]
    word = 0
    for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        while word < len(words) and words[word][1] <= start:
            word += 1
        if word == MAX_WORDS or len(ids) == MAX_TOKENS:
            break
        ids.append(token)
        is_inside = word < len(words) and words[word][0] < end and start < words[word][1]
        word_of.append(word if is_inside else -1)
    words = words[: max(word_of) + 1]  # Without the words whose tokens were cut off.
    ids.append(SEP)
    word_of.append(-1)
    types, field_of = [0] * len(ids), [-1] * len(ids)
    fields = [name for name, value in context.items() if value is not None][:MAX_FIELDS]
    field_stems = []
    for field, name in enumerate(fields):
        value = str(context[name])[:MAX_VALUE_CHARACTERS]
        text = f"{' '.join(words_in(name))}: {value}"
        tokens = [*tokenizer.encode(text, add_special_tokens=False).ids[:MAX_FIELD_TOKENS], SEP]
        ids += tokens
        types += [1] * len(tokens)
        field_of += [field] * (len(tokens) - 1) + [-1]
        word_of += [-1] * len(tokens)
        field_stems.append(frozenset(map(stem, words_in(value))))
    features, numbers = _features(question, words), _numbers(question, words)
    stems = [stem(question[start:end]) for start, end in words]
    return Message(
        question,
        ids,
        types,
        words,
        word_of,
        field_of,
        fields,
        features,
        numbers,
        stems,
        field_stems,
    )


def words_in(text: str) -> list[str]:
    """Return the words of a text or an identifier: ``findTrain_id`` has find, train and id."""
    return [part.casefold() for part in _IDENTIFIER_PARTS.findall(text)]


def stem(word: str) -> str:
    """Return a rough stem of a word: its first five letters, without the s of a plural."""
    lower = word.casefold()
    if len(lower) > 3 and lower.endswith("s"):
        lower = lower[:-1]
    return lower[:5]


def _features(question: str, words: Sequence[tuple[int, int]]) -> list[list[float]]:
    """Return ``WORD_FEATURES`` numbers for each word, from the word and the gap before it."""
    features, previous_end = [], 0
    for start, word_end in words:
        word, gap = question[start:word_end], question[previous_end:start]
        starts_sentence = not previous_end or not _SENTENCE_BREAKS.isdisjoint(gap)
        features.append(
            [
                float(word[0].isupper() and not starts_sentence),
                float(word[0].isupper() and starts_sentence),
                float(len(word) > 1 and word.isupper()),
                float(any(map(str.isdigit, word))),
                float(starts_sentence),
                float(not _QUOTES_AND_COMMA.isdisjoint(gap)),
            ]
        )
        previous_end = word_end
    return features


def _numbers(question: str, words: Sequence[tuple[int, int]]) -> list[Number]:
    numbers = []
    for mention in number_mentions(question):
        indices = [
            n for n, (start, end) in enumerate(words) if start < mention.end and mention.start < end
        ]
        if indices:
            numbers.append(Number(mention.value, first=indices[0], last=indices[-1]))
    return numbers
