"""What a generator is: evidence in, a cited text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from casewright.graph.evidence import Evidence
from casewright.planner.request import Turn

_CITATION = re.compile(r"\[(E[0-9]+(?:\s*[,;]\s*E[0-9]+)*)\]")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What there is to answer from.

    Attributes:
        question: What the user asked.
        evidence: What the steps found, in plan order.
        missing: What they did not find, one sentence each.
        history: Earlier turns.
    """

    question: str
    evidence: Sequence[Evidence]
    missing: Sequence[str] = ()
    history: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """A worded answer, with token counts where a language model wrote it."""

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    generator: str = ""


class Generator(Protocol):
    """Words an answer from evidence and cites it as ``[E1]``."""

    @property
    def name(self) -> str:
        """How the generator is named in answers."""

    def generate(self, request: GenerationRequest) -> Generation:
        """Return the worded answer."""

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """The same, without blocking the event loop."""


def checked(text: str, evidence: Sequence[Evidence]) -> tuple[str, list[str]]:
    """Return the text without citations of unknown evidence, and the ids that it cites."""
    known = {item.id for item in evidence}
    cited: dict[str, None] = {}

    def keep(found: re.Match[str]) -> str:
        ids = [name for name in re.findall(r"E[0-9]+", found[1]) if name in known]
        cited.update(dict.fromkeys(ids))
        return "".join(f"[{name}]" for name in ids)

    text = _CITATION.sub(keep, text)
    return re.sub(r"[ \t]+([.,;!?])", r"\1", text).strip(), list(cited)
