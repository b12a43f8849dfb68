"""What the argument step sees of one word of a question: the word, its neighbours, its place."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from casewright.planner.literals import Word
from casewright.planner.spans import normalized

#: Columns that features are hashed into.
COLUMNS = 1 << 17
#: Parts of a question that places are told apart by.
_PARTS = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """An argument whose words are looked for.

    Attributes:
        name: Tool and parameter.
        place: Which of the plan's literals it is, counting from 0.
        slots: How many literals the plan has.
    """

    name: str
    place: int
    slots: int


def word_rows(words: Sequence[Word], slot: Slot) -> csr_array:
    """Return one row a word, array (words, ``COLUMNS``) of zeros and ones.

    Every feature stands twice: for all arguments alike, and for this one's alone.
    """
    texts = ["", *(normalized(word.text) for word in words), ""]
    found = [sorted({*_columns(texts, words, at, slot)}) for at in range(len(words))]
    starts = np.cumsum([0, *map(len, found)])
    places = np.array([column for own in found for column in own], dtype=np.int64)
    values = np.ones(len(places), dtype=np.float32)
    return csr_array((values, places, starts), shape=(len(words), COLUMNS))


def _columns(texts: Sequence[str], words: Sequence[Word], at: int, slot: Slot) -> Iterator[int]:
    for feature in _features(texts, words, at, slot):
        yield zlib.crc32(feature.encode()) % COLUMNS
        yield zlib.crc32(f"{slot.name}|{feature}".encode()) % COLUMNS


def _features(texts: Sequence[str], words: Sequence[Word], at: int, slot: Slot) -> Iterator[str]:
    """Yield what holds of a word; ``texts`` has an empty text before and after the words'."""
    word, (before, own, after) = words[at], texts[at : at + 3]
    breaks = word.after_break, at + 1 < len(words) and words[at + 1].after_break
    part = _PARTS * at // len(words)
    yield "any word"
    yield f"word {own}"
    yield f"end {own[-3:]}"
    yield f"before {'' if breaks[0] else before}"
    yield f"after {'' if breaks[1] else after}"
    yield f"pair {before} {own}"
    yield f"pair {own} {after}"
    yield f"two before {texts[max(at - 1, 0)]} {before}"
    yield f"breaks {breaks}"
    yield f"part {part} of slot {slot.place} of {slot.slots}"
    yield f"upper {at > 0 and word.text[:1].isupper()}"
    yield f"digit {any(char.isdigit() for char in own)}"
