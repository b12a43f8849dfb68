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
from numpy.typing import NDArray
from scipy.sparse import csr_array

from casewright.finetune.baselines.settings import ClassifierSettings

_TOKEN = re.compile(r"\w+|\?")
#: Counts that grow with the number of things asked, each with the count that is plenty.
_LENGTHS = ((re.compile(r"\?"), 3), (re.compile(r"[,.;!?]"), 6), (re.compile(r"\w+"), 40))


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """Turns requests into rows of numbers.

    Attributes:
        dimension: Of the embeddings.
        rarity: Words and pairs of words, each with its inverse document frequency.
        fields: Fields of the context whose presence counts.
        embedding_scale: Length of the embedding's part.
        words_scale: Length of the words' part.
    """

    dimension: int
    rarity: Mapping[str, float]
    fields: tuple[str, ...]
    embedding_scale: float
    words_scale: float

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        contexts: Sequence[Mapping[str, Any]],
        dimension: int,
        settings: ClassifierSettings,
    ) -> QuestionFeatures:
        """Choose the words and fields that are frequent enough."""
        words = Counter(token for question in questions for token in _tokens(question))
        fields = Counter(field for context in contexts for field in _present(context))
        return cls(
            dimension,
            {
                token: math.log(len(questions) / count)
                for token, count in sorted(words.items())
                if count >= settings.least_word
            },
            tuple(sorted(name for name, count in fields.items() if count >= settings.least)),
            settings.embedding_scale,
            settings.words_scale,
        )

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.dimension + len(self.rarity) + len(_LENGTHS) + len(self.fields)

    def matrix(
        self,
        questions: Sequence[str],
        vectors: NDArray[np.float32],
        contexts: Sequence[Mapping[str, Any]],
    ) -> csr_array:
        """Return one row a request.

        Args:
            questions: n texts.
            vectors: Their embeddings, array (n, dimension).
            contexts: n contexts.

        Returns:
            Sparse array (n, ``width``) of float32: embedding, words, lengths, fields.
        """
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # No encoder promises unit vectors; a zero vector says nothing.
        units = self.embedding_scale * vectors / np.where(lengths > 0, lengths, 1)
        columns = {word: self.dimension + place for place, word in enumerate(self.rarity)}
        behind = range(self.dimension + len(columns), self.width)
        places: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float32]] = []
        for question, unit, context in zip(questions, units, contexts, strict=True):
            words = sorted(columns.keys() & _tokens(question))
            weights = np.array([self.rarity[word] for word in words], dtype=np.float32)
            norm = float(np.linalg.norm(weights)) or 1.0
            there = _present(context)
            more = [min(len(p.findall(question)), most) / most for p, most in _LENGTHS]
            more += [float(field in there) for field in self.fields]
            places.append(np.array([*range(self.dimension), *(columns[w] for w in words), *behind]))
            values.append(
                np.concatenate([unit, self.words_scale / norm * weights, more], dtype=np.float32)
            )
        starts = np.cumsum([0, *map(len, places)])
        shape = (len(questions), self.width)
        return csr_array((np.concatenate(values), np.concatenate(places), starts), shape=shape)


def _tokens(question: str) -> set[str]:
    words = _TOKEN.findall(question.casefold())
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}


def _present(context: Mapping[str, Any]) -> set[str]:
    return {field for field, value in context.items() if value is not None}
