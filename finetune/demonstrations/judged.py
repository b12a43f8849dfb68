"""Questions with answers: what a model is asked, and which cases may be shown before it."""

from __future__ import annotations

import re
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
class Asked:
    """A question, its answers, at least one, and what a prompt shows before it, in order."""

    question: str
    answers: tuple[str, ...]
    demonstrations: tuple[Demonstration, ...] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of a text to a model: the natural logarithm, a sum over its tokens."""

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


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question whose answers are known.

    Attributes:
        right: Right answers, the best one first; at least one.
        wrong: Wrong answers; there may be none.
        group: Metadata field, and what it is in cases of this question, which are not shown before
            it; ``None`` where the store has none of it.
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
        """The filter of the cases that may be shown, as ``CaseStore.search`` takes it."""
        return {} if self.group is None else {self.group[0]: {"not": self.group[1]}}

    def may_see(self, case: Case) -> bool:
        """Return whether a case may be shown."""
        return self.group is None or case.metadata.get(self.group[0]) != self.group[1]


@dataclass(frozen=True, slots=True)
class CaseReading:
    """Reads a store's cases as demonstrations, and as questions with answers.

    Attributes:
        group: Metadata field by which cases of one question are known: none of them is shown
            before that question.
        wrong: Metadata field with a list of wrong answers, where there is one.
    """

    component: str
    group: str = "group"
    wrong: str = "wrong"

    @classmethod
    def of(
        cls, store: CaseStore, component: str | None = None, group: str = "group"
    ) -> CaseReading:
        """Return the reading of a store; its first facet's component is the question by default."""
        return cls(component or store.schema.facets[0].components[0], group)

    def demonstration(self, case: Case) -> Demonstration:
        """Return a case as a demonstration.

        Raises:
            InputError: Its question or its solution is no text.
        """
        question, answer = case.problem.get(self.component), case.solution
        if not (isinstance(question, str) and isinstance(answer, str) and answer.strip()):
            raise InputError(
                f"Case {case.id} is no demonstration: its problem's {self.component!r} and its "
                f"solution are {question!r:.80} and {answer!r:.80}. Both must be texts."
            )
        return Demonstration(question, answer)

    def questions(self, cases: Iterable[Case]) -> list[JudgedQuestion]:
        """Return the cases as questions, each to be asked without what is stored of it.

        Cases of one group and one question make one question, with their solutions as right
        answers.

        Raises:
            InputError: A case is no demonstration, or has no group.
        """
        results: dict[tuple[str | int, str], tuple[dict[str, None], dict[str, None]]] = {}
        for case in cases:
            shown = self.demonstration(case)
            group = case.metadata.get(self.group)
            if not isinstance(group, (str, int)):
                raise InputError(
                    f"Case {case.id} has {group!r:.80} as {self.group!r} in its metadata, by which "
                    "the cases of one question are left out when it is asked. Give each a text or "
                    "a whole number there (CaseStore.update), or questions of a file."
                )
            right, wrong = results.setdefault((group, shown.question), ({}, {}))
            right[shown.answer] = None
            wrong.update(dict.fromkeys(_texts(case, self.wrong)))
        return [
            JudgedQuestion(question, tuple(right), tuple(wrong), (self.group, group))
            for (group, question), (right, wrong) in results.items()
        ]


def _texts(case: Case, name: str) -> Sequence[str]:
    given = case.metadata.get(name, ())
    if not isinstance(given, (list, tuple)) or not all(isinstance(item, str) for item in given):
        raise InputError(
            f"Case {case.id} has {given!r:.80} as {name!r} in its metadata. Give a list of texts."
        )
    return given


_FIELD = re.compile(r"\{(question|answer)\}")


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """The form of a prompt, by default that of TruthfulQA's own evaluation (Lin et al. 2022).

    ``{question}`` and ``{answer}`` stand for the texts.

    Attributes:
        demonstration: One of the questions before, with its answer.
        answer: What follows it. It begins with the space, as tokenizers join it to a word.

    Raises:
        InputError: A part lacks what it is the form of.
    """

    demonstration: str = "Q: {question}\nA: {answer}\n\n"
    question: str = "Q: {question}\nA:"
    answer: str = " {answer}"
    opening: str = ""

    def __post_init__(self) -> None:
        needed = {
            "demonstration": ("{question}", "{answer}"),
            "question": ("{question}",),
            "answer": ("{answer}",),
        }
        for name, fields in needed.items():
            if lacking := [field for field in fields if field not in getattr(self, name)]:
                raise InputError(f"The form's {name} has no {' and no '.join(lacking)}. Add it.")

    def context(self, question: str, demonstrations: Sequence[Demonstration]) -> str:
        """Return all that stands before an answer."""
        shown = "".join(self.shown(item) for item in demonstrations)
        return f"{self.opening}{shown}{_filled(self.question, question, '')}"

    def shown(self, demonstration: Demonstration) -> str:
        """Return a demonstration as a prompt shows it."""
        return _filled(self.demonstration, demonstration.question, demonstration.answer)

    def answered(self, answer: str) -> str:
        """Return an answer as it follows the question."""
        return _filled(self.answer, "", answer)


def _filled(form: str, question: str, answer: str) -> str:
    # At once: a question may hold "{answer}" itself.
    texts = {"question": question, "answer": answer}
    return _FIELD.sub(lambda found: texts[found.group(1)], form)
