"""Questions with known answers, and the demonstrations that may precede them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import InputError
from casewright.stores import Case, CaseStore


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question and its answer, shown before another question."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class AnswerPrompt:
    """A question, the answers to score (at least one), and demonstrations in prompt order."""

    question: str
    answers: tuple[str, ...]
    demonstrations: tuple[Demonstration, ...] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The log-likelihood of a text under a model: natural logarithms, summed over its tokens."""

    logprob: float
    tokens: int


class AnswerScorer(Protocol):
    """A model that scores how likely answers are."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def signature(self) -> str:
        """The model's name with an identifier of its weights."""

    def key(self, prompt: AnswerPrompt) -> str:
        """Return a key that is unique among all models, prompts and answers."""

    def tokens(self, prompts: Sequence[AnswerPrompt]) -> int:
        """Return the number of tokens to read; ``InputError`` if a prompt is too long."""

    def score(self, prompts: Sequence[AnswerPrompt]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each prompt's index and its answers' likelihoods, as soon as they are ready.

        ``InputError`` if a prompt is too long.
        """


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with its right answers, at least one and the best one first.

    ``group`` is a metadata field with its value; cases with this value may not be demonstrations.
    """

    question: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    group: tuple[str, str | int] | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """The right answers, then the wrong ones."""
        return self.right + self.wrong

    @property
    def where(self) -> Mapping[str, Any]:
        """The filter for ``CaseStore.search`` of the cases that may be demonstrations."""
        return {} if self.group is None else {self.group[0]: {"not": self.group[1]}}

    def may_see(self, case: Case) -> bool:
        """Return True if a case may be a demonstration for this question."""
        return self.group is None or case.metadata.get(self.group[0]) != self.group[1]


@dataclass(frozen=True, slots=True)
class CaseReader:
    """Reads a store's cases as demonstrations, and as questions with answers.

    ``component`` names the problem's component that holds the question. ``group`` names the
    metadata field that holds the case's group; see ``JudgedQuestion``.
    """

    component: str
    group: str = "group"

    @classmethod
    def of(cls, store: CaseStore, component: str | None = None, group: str = "group") -> CaseReader:
        """Return a store's reader; the default component is the first one of the first facet."""
        return cls(component or store.schema.facets[0].components[0], group)

    def demonstration(self, case: Case) -> Demonstration:
        """Return a case as a demonstration; ``InputError`` if question or answer is no text."""
        question, answer = case.problem.get(self.component), case.solution
        if not (isinstance(question, str) and isinstance(answer, str) and answer.strip()):
            raise InputError(
                f"Case {case.id} is no demonstration: its problem's {self.component!r} and its "
                f"solution are {question!r:.80} and {answer!r:.80}. Both must be texts."
            )
        return Demonstration(question, answer)

    def questions(self, cases: Iterable[Case]) -> list[JudgedQuestion]:
        """Return the cases as questions; cases of the same group and question make one question.

        ``InputError`` if a case is no demonstration, has no group, or an invalid ``wrong``.
        """
        right_and_wrong: dict[tuple[str | int, str], tuple[dict[str, None], dict[str, None]]] = {}
        for case in cases:
            demonstration = self.demonstration(case)
            group = case.metadata.get(self.group)
            if not isinstance(group, (str, int)):
                raise InputError(
                    f"Case {case.id} has {group!r:.80} as {self.group!r} in its metadata, which "
                    "must be a text or a whole number, since cases of a question's group are not "
                    "shown before it. Set it (CaseStore.update), or give a file of questions."
                )
            wrong_answers = case.metadata.get("wrong", ())
            if not isinstance(wrong_answers, (list, tuple)) or not all(
                isinstance(text, str) for text in wrong_answers
            ):
                raise InputError(
                    f"Case {case.id} has {wrong_answers!r:.80} as 'wrong' in its metadata. Give a "
                    "list of texts."
                )
            right, wrong = right_and_wrong.setdefault((group, demonstration.question), ({}, {}))
            right[demonstration.answer] = None
            wrong.update(dict.fromkeys(wrong_answers))
        return [
            JudgedQuestion(question, tuple(right), tuple(wrong), (self.group, group))
            for (group, question), (right, wrong) in right_and_wrong.items()
        ]


def context_of(question: str, demonstrations: Sequence[Demonstration]) -> str:
    """Return the prompt up to the answer, in the form of TruthfulQA's evaluation (Lin et al. 2022).

    The prompt does not end with a space, because tokenizers join a space to the next word.
    """
    examples = "".join(f"Q: {pair.question}\nA: {pair.answer}\n\n" for pair in demonstrations)
    return f"{examples}Q: {question}\nA:"
