"""What a model is asked for the probability of, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question and its answer, shown before another question."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its answers, at least one, and what a prompt shows before it, in order."""

    question: str
    answers: tuple[str, ...]
    demonstrations: tuple[Demonstration, ...] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely a model holds a text to be: the natural logarithm, a sum over its tokens."""

    logprob: float
    tokens: int


class AnswerScorer(Protocol):
    """Tells how likely a model holds answers to be."""

    @property
    def name(self) -> str:
        """The model's name."""

    def keys(self, asked: Asked) -> Sequence[str]:
        """Return for each answer what tells its likelihood from all others, of any model."""

    def tokens(self, asked: Sequence[Asked]) -> int:
        """Return how many tokens the model reads for these, without asking it.

        Raises:
            InputError: One of them is longer than the model can read.
        """

    def score(self, asked: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield which of the asked it was, counted from 0, and each answer's likelihood.

        They come as they are ready, so that what is done can be kept.

        Raises:
            InputError: One of them is longer than the model can read.
            ScoringError: The model failed, or tells no probabilities.
        """


class LocalScorer(AnswerScorer, Protocol):
    """Tells how likely a model holds answers to be as texts, from weights that are known."""

    @property
    def signature(self) -> str:
        """The model's name, with what tells its weights from others of that name."""
