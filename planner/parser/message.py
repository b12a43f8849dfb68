"""A message as the plan parser sees it: tokens, their words, the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import regex as re

from casewright.planner.parser.numbers import number_mentions
from casewright.planner.spans import RUNS, normalized

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: A longer message is cut.
MAX_WORDS, MAX_TOKENS = 96, 160
#: Most context fields, tokens of a field, and characters of its value.
MAX_FIELDS, FIELD_TOKENS, VALUE_CHARACTERS = 8, 14, 48
CLS, SEP = 101, 102
#: Features of a word beside its tokens.
WORD_FEATURES = 6
_BREAKS = frozenset(".?!;:\n")
_PIECES = re.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\W\d_\p{Lu}]+|\d+|\p{Lu}")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a message: its value, and its first and last word."""

    value: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Message:
    """A tokenised message.

    Attributes:
        question: The text.
        ids: Token ids: the question's, then the context's.
        types: 0 for the question's tokens, 1 for the context's.
        words: First character and end of each of the question's words that were read.
        word_of: The word of each token, or -1.
        field_of: The context field of each token, or -1.
        fields: The context's fields that have a value.
        features: Of each word (words, WORD_FEATURES).
        numbers: The numbers that the question names.
        stems: The stem of each word.
        field_stems: The stems of each field's value.
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
        """Return the question's text from the first word to the last."""
        return self.question[self.words[first][0] : self.words[last][1]]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the first and last word of every occurrence of a text."""
        searched = normalized(text)
        runs = len(RUNS.findall(searched))
        return [
            (first, first + runs - 1)
            for first in range(len(self.words) - runs + 1)
            if runs and normalized(self.text(first, first + runs - 1)) == searched
        ]


def read_message(tokenizer: Tokenizer, question: str, context: Mapping[str, Any]) -> Message:
    """Tokenize a question and its context, and cut them to the lengths that are read."""
    words = [run.span() for run in RUNS.finditer(question)][:MAX_WORDS]
    encoded = tokenizer.encode(question, add_special_tokens=False)
    ids, word_of = [CLS], [-1]
    word = 0
    for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        while word < len(words) and words[word][1] <= start:
            word += 1
        if word == len(words) and words and start >= words[-1][1] and len(words) == MAX_WORDS:
            break
        if len(ids) == MAX_TOKENS:
            break
        ids.append(token)
        inside = word < len(words) and words[word][0] < end and start < words[word][1]
        word_of.append(word if inside else -1)
    words = words[: max(word_of) + 1]
    ids.append(SEP)
    word_of.append(-1)
    types, field_of = [0] * len(ids), [-1] * len(ids)
    fields = [name for name, value in context.items() if value is not None][:MAX_FIELDS]
    stems = []
    for number, name in enumerate(fields):
        value = str(context[name])[:VALUE_CHARACTERS]
        text = f"{' '.join(words_in(name))}: {value}"
        tokens = tokenizer.encode(text, add_special_tokens=False).ids[:FIELD_TOKENS]
        ids += [*tokens, SEP]
        types += [1] * (len(tokens) + 1)
        field_of += [number] * len(tokens) + [-1]
        word_of += [-1] * (len(tokens) + 1)
        stems.append(frozenset(map(stem, words_in(value))))
    return Message(
        question,
        ids,
        types,
        words,
        word_of,
        field_of,
        fields,
        _features(question, words),
        _numbers(question, words),
        [stem(question[start:end]) for start, end in words],
        stems,
    )


def words_in(text: str) -> list[str]:
    """Return the words of a text or an identifier: ``findTrain_id`` has find, train and id."""
    return [piece.casefold() for piece in _PIECES.findall(text)]


def stem(word: str) -> str:
    """Return a rough stem of a word: five letters, without a plural's end."""
    plain = word.casefold()
    if len(plain) > 3 and plain.endswith("s"):
        plain = plain[:-1]
    return plain[:5]


def _features(question: str, words: Sequence[tuple[int, int]]) -> list[list[float]]:
    features, end = [], 0
    for start, stop in words:
        word, gap = question[start:stop], question[end:start]
        begins = not end or any(char in _BREAKS for char in gap)
        features.append(
            [
                float(word[0].isupper() and not begins),
                float(word[0].isupper() and begins),
                float(len(word) > 1 and word.isupper()),
                float(any(char.isdigit() for char in word)),
                float(begins),
                float(any(char in "\"'“”«»‘’," for char in gap)),
            ]
        )
        end = stop
    return features


def _numbers(question: str, words: Sequence[tuple[int, int]]) -> list[Number]:
    numbers = []
    for mention in number_mentions(question):
        within = [
            w for w, (start, end) in enumerate(words) if start < mention.end and mention.start < end
        ]
        if within:
            numbers.append(Number(mention.value, within[0], within[-1]))
    return numbers
