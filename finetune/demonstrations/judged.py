"""Questions with known answers, and the demonstrations that may precede them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import InputError
from casewright.stores import Case, CaseStore


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question and its answer, which a prompt shows before another question."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class AnswerPrompt:
    """A question with demonstrations in the prompt's order, and at least one answer to score."""

    question: str
    answers: tuple[str, ...]
    demonstrations: tuple[Demonstration, ...] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The log-probability of an answer (a natural logarithm), and the answer's token count."""

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
        """Return the prompt's key; no other prompt and no other model has the same key."""

    def tokens(self, prompts: Sequence[AnswerPrompt]) -> int:
        """Return how many tokens the model reads; ``InputError`` if a prompt is too long."""

    def score(self, prompts: Sequence[AnswerPrompt]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each prompt's index and the likelihoods of the prompt's answers.

        The prompts may come in any order. ``InputError`` if a prompt is too long.
        """


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with right answers (at least one, the best first) and known wrong answers.

    ``group`` names a metadata field and a value; cases with this value may not be demonstrations.
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
        """A filter with which ``CaseStore.search`` finds only cases that may be demonstrations."""
        return {} if self.group is None else {self.group[0]: {"not": self.group[1]}}

    def may_see(self, case: Case) -> bool:
        """Return True if a case may be a demonstration for this question."""
        return self.group is None or case.metadata.get(self.group[0]) != self.group[1]


@dataclass(frozen=True, slots=True)
class CaseReader:
    """Reads a store's cases as demonstrations, and as questions with answers.

    ``component`` is the key of the question in ``Case.problem``. ``group`` is the key of a case's
    group in ``Case.metadata``; see ``JudgedQuestion``.
    """

    component: str
    group: str = "group"

    @classmethod
    def of(cls, store: CaseStore, component: str | None = None, group: str = "group") -> CaseReader:
        """Return a ``CaseReader``; by default with the first component in the schema."""
        return cls(component or store.schema.facets[0].components[0], group)

    def demonstration(self, case: Case) -> Demonstration:
        """Return a case as a demonstration; ``InputError`` if it has no question or no answer."""
        question, answer = case.problem.get(self.component), case.solution
        if not (isinstance(question, str) and isinstance(answer, str) and answer.strip()):
            raise InputError(
                f"Case {case.id} is no demonstration: its problem's {self.component!r} and its "
                f"solution are {question!r:.80} and {answer!r:.80}. Both must be texts, not empty."
            )
        return Demonstration(question, answer)

    def questions(self, cases: Iterable[Case]) -> list[JudgedQuestion]:
        """Return a ``JudgedQuestion`` for each group and question, with all answers of the cases.

        ``InputError`` if a case is no demonstration or has no group, or if the wrong answers in its
        metadata (``wrong``) are no list of texts.
        """
        # The right and the wrong answers by group and question; the dictionaries drop duplicates.
        right_and_wrong: dict[tuple[str | int, str], tuple[dict[str, None], dict[str, None]]] = {}
        for case in cases:
            demonstration = self.demonstration(case)
            group = case.metadata.get(self.group)
            if not isinstance(group, (str, int)):
                raise InputError(
                    f"Case {case.id} has {group!r:.80} as {self.group!r} in its metadata. Set a "
                    "group (a text or a whole number) by CaseStore.update, so that no prompt shows "
                    "a case before a question of the same group; or give a file of questions."
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
