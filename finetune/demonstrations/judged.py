"""Questions with right and wrong answers, and which cases may be shown before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.errors import InputError
from casewright.finetune.demonstrations.asked import Demonstration
from casewright.stores import Case, CaseStore


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question whose answers are known.

    Attributes:
        question: The question.
        right: Right answers, the best one first; at least one.
        wrong: Wrong answers; there may be none.
        where: What a case must have to be shown: as a rule, not to be of this question.
    """

    question: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> tuple[str, ...]:
        """The right answers, then the wrong ones."""
        return self.right + self.wrong

    def may_see(self, case: Case) -> bool:
        """Say whether a case may be shown, for conditions of the form that leave questions out."""
        return all(
            case.metadata.get(name) != value["not"]
            for name, value in self.where.items()
            if isinstance(value, Mapping) and "not" in value
        )


@dataclass(frozen=True, slots=True)
class CaseReading:
    """How a store's cases read as demonstrations, and as questions with answers.

    Attributes:
        component: The problem's component that is the question.
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
        found: dict[tuple[str | int, str], tuple[dict[str, None], dict[str, None]]] = {}
        for case in cases:
            shown = self.demonstration(case)
            group = case.metadata.get(self.group)
            if not isinstance(group, (str, int)):
                raise InputError(
                    f"Case {case.id} has {group!r:.80} as {self.group!r} in its metadata, by which "
                    "the cases of one question are left out when it is asked. Give each a text or "
                    "a whole number there (CaseStore.update), or questions of a file."
                )
            right, wrong = found.setdefault((group, shown.question), ({}, {}))
            right[shown.answer] = None
            wrong.update(dict.fromkeys(_texts(case, self.wrong)))
        return [
            JudgedQuestion(question, tuple(right), tuple(wrong), {self.group: {"not": group}})
            for (group, question), (right, wrong) in found.items()
        ]


def _texts(case: Case, name: str) -> Sequence[str]:
    given = case.metadata.get(name, ())
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise InputError(
            f"Case {case.id} has {given!r:.80} as {name!r} in its metadata. Give a list of texts."
        )
    return given
