"""What a judge is: candidates in, the relevant among them out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from casewright.errors import cleaned
from casewright.stores.feedback.candidate import Candidate

#: Most tokens that one call is taken to have spent.
MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What a judge is asked, in one call a round.

    Attributes:
        question: What the user wants to know.
        relevant: What is relevant already: context, not to be judged again. The post's own example
            needs it: the body of a loop is relevant only beside the method's head.
        candidates: The unseen, best first.
        seconds: How long the judge may take.
    """

    question: str
    relevant: Sequence[Candidate]
    candidates: Sequence[Candidate]
    seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a judge says of the candidates.

    Attributes:
        relevant: Ids of those that are relevant.
        probabilities: Id to how probable that is, from 0 to 1, where the judge can tell.
        tokens: Token counts where a language model judged: ``input`` and ``output``.
        note: What went wrong, where something did.
        failed: The judge could not judge, a model not be reached for example: nothing is said of
            any candidate. It ends the loop as an exception would.
    """

    relevant: frozenset[str]
    probabilities: Mapping[str, float] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    failed: bool = False


class Judge(Protocol):
    """Says which candidates are relevant."""

    @property
    def name(self) -> str:
        """How the judge is named in results."""

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the verdicts; whatever it raises ends the loop, and loses nothing."""


@runtime_checkable
class AsyncJudge(Judge, Protocol):
    """A judge that can be awaited; others run in a thread."""

    async def ajudge(self, request: JudgeRequest) -> Verdicts:
        """The same, without blocking the event loop."""


def checked(verdicts: Any, request: JudgeRequest) -> Verdicts:
    """Return verdicts about the candidates alone, whatever a judge answered.

    What is no verdict is read as "nothing more", and its note says so.
    """
    if not isinstance(verdicts, Verdicts):
        return Verdicts(frozenset(), note=f"The judge answered with a {type(verdicts).__name__}.")
    given: Any = verdicts.relevant
    if isinstance(given, str):
        return Verdicts(frozenset(), note="The judge's relevant is a text, not a set of ids.")
    known = {candidate.id for candidate in request.candidates}
    try:
        failed = bool(verdicts.failed)
        return Verdicts(
            frozenset() if failed else frozenset(known & set(verdicts.relevant)),
            {
                id_: float(p)
                for id_, p in verdicts.probabilities.items()
                if id_ in known and 0 <= float(p) <= 1
            },
            # More is no count, and no checkpoint could hold it.
            {str(name): min(max(int(n), 0), MOST) for name, n in verdicts.tokens.items()},
            plain(str(verdicts.note)),
            failed,
        )
    except Exception as error:  # noqa: BLE001 - what a judge hands back may raise anything
        name = type(error).__name__
        return Verdicts(frozenset(), note=f"The judge's verdicts cannot be read ({name}).")


def plain(note: str) -> str:
    """Return a note in one bounded line that can be written as UTF-8, without secrets."""
    return cleaned(note.encode("utf-8", "replace").decode())
