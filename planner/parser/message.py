"""A message as the plan parser sees it: tokens, the words that they belong to, the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.planner.parser.numbers import number_mentions
from casewright.planner.parser.wording import words_in
from casewright.planner.spans import RUNS, normalized

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Of a longer message the end is not read.
MAX_WORDS, MAX_TOKENS = 96, 160
#: Of a context: fields, tokens of one of them, and characters of a value.
MAX_FIELDS, FIELD_TOKENS, VALUE_CHARACTERS = 8, 14, 48
CLS, SEP = 101, 102
#: Features of a word beside its tokens.
WORD_FEATURES = 6
_BREAKS = frozenset(".?!;:\n")


@dataclass(frozen=True, slots=True)
class Number:
    """A number that the message names: its value, and its first and last word."""

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
        words: Where the question's words that were read begin and end.
        word_of: Of each token: its word, or -1.
        field_of: Of each token: its context field, or -1.
        fields: The context's fields that have a value.
        features: Of each word, array-like (words, WORD_FEATURES).
        numbers: What the message names.
        stems: Of each word.
        field_stems: Of each field's value.
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
        """Return the words from the first to the last, as they stand in the question."""
        return self.question[self.words[first][0] : self.words[last][1]]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the first and last word of every place where a text stands."""
        wanted = normalized(text)
        runs = len(RUNS.findall(wanted))
        return [
            (first, first + runs - 1)
            for first in range(len(self.words) - runs + 1)
            if runs and normalized(self.text(first, first + runs - 1)) == wanted
        ]


def read_message(tokenizer: Tokenizer, question: str, context: Mapping[str, Any]) -> Message:
    """Tokenise a question and its context; what is longer than is read is cut."""
    words = [run.span() for run in RUNS.finditer(question)][:MAX_WORDS]
    encoded = tokenizer.encode(question, add_special_tokens=False)
    ids, word_of = [CLS], [-1]
    at = 0
    for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        while at < len(words) and words[at][1] <= start:
            at += 1
        if at == len(words) and words and start >= words[-1][1] and len(words) == MAX_WORDS:
            break
        if len(ids) == MAX_TOKENS:
            break
        ids.append(token)
        inside = at < len(words) and words[at][0] < end and start < words[at][1]
        word_of.append(at if inside else -1)
    words = words[: max(word_of) + 1]
    ids.append(SEP)
    word_of.append(-1)
    types, field_of = [0] * len(ids), [-1] * len(ids)
    known = {name: value for name, value in context.items() if value is not None}
    fields = list(known)[:MAX_FIELDS]
    stems = []
    for number, name in enumerate(fields):
        value = str(known[name])[:VALUE_CHARACTERS]
        text = f"{' '.join(words_in(name))}: {value}"
        own = tokenizer.encode(text, add_special_tokens=False).ids[:FIELD_TOKENS]
        ids += [*own, SEP]
        types += [1] * (len(own) + 1)
        field_of += [number] * len(own) + [-1]
        word_of += [-1] * (len(own) + 1)
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


def stem(word: str) -> str:
    """Return what forms of one word share, roughly: five letters, without a plural's end."""
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
        own = [
            w for w, (start, end) in enumerate(words) if start < mention.end and mention.start < end
        ]
        if own:
            numbers.append(Number(mention.value, own[0], own[-1]))
    return numbers
