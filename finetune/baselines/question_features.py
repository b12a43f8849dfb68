"""What the classifiers see of a request: embedding, words, signs of several asks, context."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from casewright.finetune.baselines.regression import ClassifierSettings, Floats

_TOKEN = re.compile(r"\w+|\?")
#: Counts that grow with the number of things asked, each with the count that is plenty.
_LENGTHS = ((re.compile(r"\?"), 3), (re.compile(r"[,.;!?]"), 6), (re.compile(r"\w+"), 40))


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """Turns requests into rows of numbers.

    Attributes:
        rarity: Words and pairs of words, each with its inverse document frequency.
        settings: The lengths of the embedding's part and of the words'.
    """

    rarity: Mapping[str, float]
    fields: tuple[str, ...]
    settings: ClassifierSettings

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        contexts: Sequence[Mapping[str, Any]],
        settings: ClassifierSettings,
    ) -> QuestionFeatures:
        """Choose the words and fields that are frequent enough."""
        words = Counter(token for question in questions for token in _tokens(question))
        fields = Counter(field for context in contexts for field in _present(context))
        rarity = {
            token: math.log(len(questions) / count)
            for token, count in sorted(words.items())
            if count >= settings.least_word
        }
        frequent = sorted(name for name, count in fields.items() if count >= settings.least)
        return cls(rarity, tuple(frequent), settings)

    @property
    def width(self) -> int:
        """Numbers of a row, beside its embedding."""
        return len(self.rarity) + len(_LENGTHS) + len(self.fields)

    def matrix(
        self,
        questions: Sequence[str],
        vectors: Floats,
        contexts: Sequence[Mapping[str, Any]],
    ) -> csr_array:
        """Return one row a request: embedding, words, lengths, fields.

        Args:
            vectors: Their embeddings, array (n, dimension).

        Returns:
            Sparse array (n, dimension + ``width``) of float32.
        """
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # No encoder promises unit vectors; a zero vector says nothing.
        units = self.settings.embedding_scale * vectors / np.where(lengths > 0, lengths, 1)
        columns = {word: place for place, word in enumerate(self.rarity)}
        found = [sorted(columns.keys() & _tokens(question)) for question in questions]
        rare = [np.array([self.rarity[w] for w in own], dtype=np.float32) for own in found]
        scaled = [
            self.settings.words_scale / (float(np.linalg.norm(own)) or 1.0) * own for own in rare
        ]
        places = [columns[word] for own in found for word in own]
        starts = np.cumsum([0, *map(len, found)])
        words = csr_array((np.concatenate(scaled), places, starts), (len(found), len(columns)))
        more = [
            [
                *(min(len(sign.findall(question)), most) / most for sign, most in _LENGTHS),
                *(float(field in _present(context)) for field in self.fields),
            ]
            for question, context in zip(questions, contexts, strict=True)
        ]
        return hstack([units, words, np.array(more)], format="csr", dtype=np.float32)


def _tokens(question: str) -> set[str]:
    words = _TOKEN.findall(question.casefold())
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}


def _present(context: Mapping[str, Any]) -> set[str]:
    return {field for field, value in context.items() if value is not None}
