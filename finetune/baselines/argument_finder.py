"""The separate argument step: which words of the question an argument is made of.

It is told the plan's shape and looks for each open literal: a logistic regression says of every
word of the question how likely it belongs to this argument, and the argument is the run of
adjacent words that is the likeliest as a whole.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from casewright.finetune.baselines.regression import ClassifierSettings, Floats, fit_regression
from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.literals import Word, text_literals, with_literals, words_of
from casewright.planner.spans import is_span, normalized

#: Columns that features are hashed into.
COLUMNS = 1 << 17
#: Parts of a question that places are told apart by.
_PARTS = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """An argument whose words are looked for.

    Attributes:
        place: Which of the plan's literals it is, counting from 0.
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


@dataclass(frozen=True, slots=True)
class ArgumentFinder:
    """Fills the open literals of a plan.

    Attributes:
        weights: Of the regression and its intercept, array (``COLUMNS`` + 1,).
    """

    weights: Floats

    @classmethod
    def fit(cls, queries: Sequence[AnnotatedQuery], settings: ClassifierSettings) -> ArgumentFinder:
        """Train on the literals that are words of their question; others are left out."""
        from scipy.sparse import vstack

        rows, labels = [], []
        for query in queries:
            words = words_of(query.query)
            for (*_, text), slot in zip(text_literals(query.plan), _slots(query.plan), strict=True):
                inside = _covered(words, text, query.query)
                if any(inside):
                    rows.append(word_rows(words, slot))
                    labels += inside
        if all(labels) or not any(labels):
            # No plan has a literal, or no question a word beside it: every word is as good.
            return cls(np.zeros(COLUMNS + 1, np.float32))
        return cls(fit_regression(vstack(rows, format="csr"), labels, settings))

    def filled(self, plan: Plan, question: str) -> Plan:
        """Return the plan with words of the question as its literals, each word used once.

        Where one argument of one tool is looked for several times, its literals stand in the
        question's order. They are left open where the question has too few words.
        """
        words = words_of(question)
        free = np.ones(len(words), dtype=bool)
        runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for slot in _slots(plan):
            scores = word_rows(words, slot) @ self.weights[:-1] + self.weights[-1]
            if run := _best_run(words, scores, free):
                free[run[0] : run[1] + 1] = False
                runs[slot.name].append(run)
        ordered = {name: iter(sorted(found)) for name, found in runs.items()}
        texts: dict[tuple[int, str], str] = {}
        for (index, name, _), slot in zip(text_literals(plan), _slots(plan), strict=True):
            if run := next(ordered.get(slot.name, iter(())), None):
                texts[index, name] = question[words[run[0]].start : words[run[1]].end]
        return with_literals(plan, texts)


def _slots(plan: Plan) -> Iterator[Slot]:
    found = text_literals(plan)
    for place, (index, name, _) in enumerate(found):
        yield Slot(f"{plan.steps[index].tool}.{name}", place, len(found))


def _covered(words: Sequence[Word], text: str, question: str) -> list[bool]:
    """Return which words of a question a text covers, where it stands there first."""
    wanted = [normalized(word.text) for word in words_of(text)]
    own = [normalized(word.text) for word in words]
    for start in range(len(own) - len(wanted) + 1):
        if text and is_span(text, question) and own[start : start + len(wanted)] == wanted:
            return [start <= at < start + len(wanted) for at in range(len(own))]
    return [False] * len(words)


def _best_run(
    words: Sequence[Word], scores: Floats, free: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the run of free words with the highest sum of log-odds, by its first and last word.

    A run does not go on behind a break such as a full stop. It has at least one word.
    """
    best, found = -np.inf, None
    total, start = 0.0, 0
    for at, (word, score) in enumerate(zip(words, scores, strict=True)):
        if not free[at]:
            total = 0.0
            continue
        if total <= 0 or word.after_break:
            total, start = 0.0, at
        total += float(score)
        if total > best:
            best, found = total, (start, at)
    return found
