"""The protocol of a judge, which gives verdicts on candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from casewright.errors import cleaned
from casewright.stores.case import Case
from casewright.stores.documents.cases import chunk_place
from casewright.stores.facet import component_text
from casewright.stores.hit import Hit

#: Maximum of a token count; a larger count is replaced by this number.
MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case that a search found and that a judge judges.

    Attributes:
        hit: The case, scored against the question.
        text: The text that the judge reads.
        nearness: The case's score in the search that found it, which may have used another query.
        round: The number of the round that found the case, from 1.
    """

    hit: Hit
    text: str
    nearness: float
    round: int

    @property
    def id(self) -> str:
        """The case's id."""
        return self.hit.case.id

    @property
    def source(self) -> tuple[str, str]:
        """Root and source path of a chunk that ``ingest`` stored; empty texts for other cases."""
        values = (self.hit.case.metadata.get(name) for name in ("root", "source"))
        root, source = (value if isinstance(value, str) else "" for value in values)
        return root, source.strip()

    def same_source(self, other: Candidate) -> bool:
        """Return ``True`` if both are chunks of one document."""
        return bool(self.source[1]) and self.source == other.source

    def beside(self, other: Candidate) -> bool:
        """Return ``True`` if the two are consecutive chunks of one document."""
        first, second = chunk_place(self.hit.case), chunk_place(other.hit.case)
        if first is None or second is None:
            return False
        return first[:2] == second[:2] and abs(first[2] - second[2]) == 1


def case_text(case: Case) -> str:
    """Return a case's distinct texts, one per line: its problem's texts, then its solution."""
    texts = [value for value in case.problem.values() if isinstance(value, str) and value.strip()]
    if case.solution is not None:
        texts.append(component_text(case.solution))
    return "\n".join(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """The input of a judge, which is called once per round.

    Attributes:
        question: The user's question.
        relevant: Relevant candidates of earlier rounds, as context: the end of a function, for
            example, may be relevant only together with the function's first lines.
        candidates: The candidates without a verdict, best first.
        seconds: Time limit of the judge in seconds.
    """

    question: str
    relevant: Sequence[Candidate]
    candidates: Sequence[Candidate]
    seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A judge's verdicts on the candidates of a request.

    Attributes:
        relevant: Ids of the relevant candidates.
        probabilities: The probability of relevance by id; empty if the judge computes none.
        tokens: A language model's token counts, with the keys ``input`` and ``output``.
        note: Description of a problem, if there was one.
        failed: True if there is no verdict, as after an exception; the feedback loop then ends.
    """

    relevant: frozenset[str]
    probabilities: Mapping[str, float] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    failed: bool = False


class Judge(Protocol):
    """Decides which candidates are relevant."""

    @property
    def name(self) -> str:
        """The judge's name in results."""

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the verdicts; an exception ends the feedback loop, and earlier results stay."""


@runtime_checkable
class AsyncJudge(Judge, Protocol):
    """A judge that can be awaited; a judge without ``ajudge`` runs in a thread."""

    async def ajudge(self, request: JudgeRequest) -> Verdicts:
        """Return the verdicts without blocking the event loop."""


def checked(verdicts: Any, request: JudgeRequest) -> Verdicts:
    """Return a judge's answer reduced to valid verdicts on the request's candidates.

    An unusable answer becomes "nothing relevant", with a note that says why.
    """
    if not isinstance(verdicts, Verdicts):
        return Verdicts(frozenset(), note=f"The judge answered with a {type(verdicts).__name__}.")
    relevant: Any = verdicts.relevant
    if isinstance(relevant, str):
        return Verdicts(frozenset(), note="The judge's relevant is a text, not a set of ids.")
    ids = {candidate.id for candidate in request.candidates}
    try:
        failed = bool(verdicts.failed)
        pairs = ((id_, float(p)) for id_, p in verdicts.probabilities.items() if id_ in ids)
        return Verdicts(
            frozenset() if failed else frozenset(ids & set(relevant)),
            {id_: probability for id_, probability in pairs if 0 <= probability <= 1},
            # A checkpoint of LangGraph cannot hold very large integers.
            {str(name): min(max(int(n), 0), MAX_TOKENS) for name, n in verdicts.tokens.items()},
            note=note_line(str(verdicts.note)),
            failed=failed,
        )
    except Exception as error:  # noqa: BLE001 - a judge's objects may raise anything
        name = type(error).__name__
        return Verdicts(frozenset(), note=f"The judge's verdicts cannot be read ({name}).")


def note_line(note: str) -> str:
    """Return a note as one bounded line of valid UTF-8, without secrets."""
    return cleaned(note.encode("utf-8", "replace").decode())
