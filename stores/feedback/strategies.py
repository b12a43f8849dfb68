"""Strategies that search again with the cases that a judge called relevant.

A ``Hit`` has a case and its vector. ``Found`` has a hit and the score of the search that found it.
``Candidate`` has a hit and the text that the judge reads.
"""

# ruff: noqa: D102 - ``Strategy`` documents the methods.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np

from casewright.errors import InputError
from casewright.stores.documents.cases import chunk_place, neighbour_places, places_condition
from casewright.stores.feedback.judge import Candidate
from casewright.stores.question import Found, Question
from casewright.stores.select import check_counts

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
#: A sentence with fewer characters is joined with the next one.
MIN_SENTENCE_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class Feedback:
    """The verdicts of a judge so far.

    Attributes:
        relevant: Relevant candidates, in the order in which they were found; at least one.
        irrelevant: The other judged candidates.
    """

    relevant: Sequence[Candidate]
    irrelevant: Sequence[Candidate] = ()

    @property
    def seen(self) -> set[str]:
        """Ids of all candidates that were judged so far."""
        return {candidate.id for candidate in (*self.relevant, *self.irrelevant)}


class Strategy(Protocol):
    """A way to search again, based on the cases that a judge called relevant."""

    @property
    def name(self) -> str:
        """The strategy's name in results."""

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Return at most k cases that were not judged yet, the most promising first."""


@dataclass(frozen=True, slots=True)
class TextStrategy:
    """A search with one query: the question and, after it, all relevant texts.

    An encoder reads only the beginning of a long query (the packaged encoder reads 256 tokens), so
    texts that are found in later rounds have little effect.

    Source: the RepoGPT post on semi-supervised retrieval (2023); see docs/glossary.md.
    """

    name: str = "text"

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        query = "\n".join([question.text, *(relevant.text for relevant in feedback.relevant)])
        return question.nearest(question.embed([query]), k, exclude=feedback.seen)


@dataclass(frozen=True, slots=True)
class SentenceStrategy:
    """A batch of searches; each query is the question and one sentence of a relevant text.

    A sentence often names the subject of the next look-up, whereas a whole text as a query finds
    similar texts. A case that several queries find has the highest of its scores.

    Attributes:
        sentences: Maximum number of sentences of one text, from its beginning.
        texts: Maximum number of texts; the texts of the last round come first.

    Raises:
        InputError: A number is not a whole number of at least 1.
    """

    sentences: int = 6
    texts: int = 3
    name: str = "sentences"

    def __post_init__(self) -> None:
        check_counts(1, sentences=self.sentences, texts=self.texts)

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        newest_first = sorted(feedback.relevant, key=lambda candidate: -candidate.round)
        queries = [
            f"{question.text} {sentence}"
            for candidate in newest_first[: self.texts]
            for sentence in _sentences(candidate.text)[: self.sentences]
        ]
        queries = list(dict.fromkeys(queries)) or [question.text]
        return question.nearest(question.embed(queries), k, exclude=feedback.seen)


@dataclass(frozen=True, slots=True)
class RocchioStrategy:
    """A search by the question's vector, moved towards relevant and away from irrelevant cases.

    The query is α·q + β·mean(relevant) − γ·mean(irrelevant) in every facet (an embedding of one or
    more parts of a case). The facets have the question's weights. No text is encoded.

    Source: Rocchio, "Relevance feedback in information retrieval" (1971); the defaults are those
    of Manning, Raghavan and Schütze, "Introduction to Information Retrieval", section 9.1.1.

    Attributes:
        alpha: Factor of the question, at least 0.
        beta: Factor of the relevant cases, above 0.
        gamma: Factor of the irrelevant cases, at least 0.

    Raises:
        InputError: A factor is not a number in its range.
    """

    alpha: float = 1.0
    beta: float = 0.75
    gamma: float = 0.15
    name: str = "rocchio"

    def __post_init__(self) -> None:
        factors: tuple[Any, ...] = (self.alpha, self.beta, self.gamma)
        numeric = all(isinstance(x, Real) and not isinstance(x, bool) for x in factors)
        if not numeric or not all(map(np.isfinite, factors)) or min(factors) < 0 or self.beta == 0:
            raise InputError(
                f"Rocchio's factors are alpha={self.alpha!r}, beta={self.beta!r}, "
                f"gamma={self.gamma!r}. Give finite numbers of at least 0, and a beta above 0."
            )

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        mean_relevant = np.mean([candidate.hit.vector for candidate in feedback.relevant], axis=0)
        vector = self.alpha * question.units + self.beta * mean_relevant
        if self.gamma and feedback.irrelevant:
            irrelevant_vectors = [candidate.hit.vector for candidate in feedback.irrelevant]
            vector = vector - self.gamma * np.mean(irrelevant_vectors, axis=0)
        return question.nearest(vector[np.newaxis].astype(np.float32), k, exclude=feedback.seen)


@dataclass(frozen=True, slots=True)
class NeighbourStrategy:
    """A look-up of the chunks before and after the relevant chunks of a document.

    The chunks need positions, as ``ingest`` writes them. A case without a position has no
    neighbours.

    Attributes:
        reach: Number of chunks to fetch before, and after, each relevant chunk.
        then: The strategy that finds further cases if there are fewer than k neighbours.

    Raises:
        InputError: The reach is not a whole number of at least 1.
    """

    reach: int = 1
    then: Strategy = field(default_factory=RocchioStrategy)
    name: str = "neighbours"

    def __post_init__(self) -> None:
        check_counts(1, reach=self.reach)

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        cases = [candidate.hit.case for candidate in feedback.relevant]
        places = {place for case in cases for place in neighbour_places(case, self.reach)}
        adjacent: list[Found] = []
        if places:
            matches = question.matching(places_condition(places), exclude=feedback.seen)
            # The condition also admits the source of one place with the position of another place.
            adjacent = [match for match in matches if chunk_place(match.hit.case) in places][:k]
        if len(adjacent) == k:
            return adjacent
        ids = {match.hit.case.id for match in adjacent}
        further = self.then.search(question, feedback, k)
        return [*adjacent, *(match for match in further if match.hit.case.id not in ids)][:k]


def _sentences(text: str) -> list[str]:
    """Return a text's sentences, also split at line ends; a short one is joined with the next."""
    sentences: list[str] = []
    sentence = ""
    for piece in _SENTENCE_END.split(text.strip()):
        sentence = f"{sentence} {piece.strip()}".strip()
        if len(sentence) >= MIN_SENTENCE_CHARACTERS:
            sentences.append(sentence)
            sentence = ""
    return [*sentences, sentence] if sentence else sentences
