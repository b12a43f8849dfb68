"""What a generator is: evidence in, a cited text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from casewright.graph.evidence import Evidence
from casewright.planner.request import Turn

_CITATION = re.compile(r"([ \t]*)\[(E[0-9]+(?:\s*[,;]\s*E[0-9]+)*)\]")
_ID = re.compile(r"E[0-9]+")


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
    """A worded answer.

    Attributes:
        text: The answer; ``[E1]`` cites evidence.
        tokens: Token counts where a language model wrote it: ``input`` and ``output``.
        generator: Who wrote it, where that is not the generator that was asked.
        citations: The ids that it cites, where the generator knows them; ``None`` has them read
            from the text, and citations of unknown evidence taken out.
    """

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    generator: str = ""
    citations: Sequence[str] | None = None


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

    def keep(found: re.Match[str]) -> str:
        ids = [name for name in _ID.findall(found[2]) if name in known]
        return found[1] + "".join(f"[{name}]" for name in ids) if ids else ""

    # Taking one out can put another together: [E[E9]8].
    while (mended := _CITATION.sub(keep, text)) != text:
        text = mended
    cited = [name for found in _CITATION.finditer(text) for name in _ID.findall(found[2])]
    return text.strip(), list(dict.fromkeys(cited))
