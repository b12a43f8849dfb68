"""The protocol of generators, which write an answer from evidence and cite the evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from casewright.graph.evidence import Evidence
from casewright.planner.request import Turn

_CITATION = re.compile(r"([ \t]*)\[(E[0-9]+(?:\s*[,;]\s*E[0-9]+)*)\]")
EVIDENCE_ID = re.compile(r"E[0-9]+")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Input of a generator; ``missing`` has a sentence for each step that gave no results."""

    question: str
    evidence: Sequence[Evidence]
    missing: Sequence[str] = ()
    history: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """The answer that a generator wrote.

    Attributes:
        text: The answer; ``[E1]`` cites evidence.
        tokens: Token counts of the language model, if any, by ``input`` and ``output``.
        generator: Name of the generator that replaced the called generator; empty if none did.
        citations: The ids of the cited evidence, if known. If ``None``, the ids are parsed from
            the text, and citations of unknown evidence are removed.
    """

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    generator: str = ""
    citations: Sequence[str] | None = None


class Generator(Protocol):
    """Writes an answer that cites evidence as ``[E1]``."""

    @property
    def name(self) -> str:
        """Name of the generator, as answers show it."""

    def generate(self, request: GenerationRequest) -> Generation:
        """Return the text of the answer."""

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """Return the same as ``generate``, without blocking the event loop."""


def checked_citations(text: str, evidence: Sequence[Evidence]) -> tuple[str, list[str]]:
    """Return the text without citations of unknown evidence, and the remaining cited ids."""
    evidence_ids = {item.id for item in evidence}

    def without_unknown(match: re.Match[str]) -> str:
        ids = [id_ for id_ in EVIDENCE_ID.findall(match[2]) if id_ in evidence_ids]
        return match[1] + "".join(f"[{id_}]" for id_ in ids) if ids else ""

    # Removing one citation can form another: [E[E9]8].
    while (shorter := _CITATION.sub(without_unknown, text)) != text:
        text = shorter
    cited_ids = [id_ for match in _CITATION.finditer(text) for id_ in EVIDENCE_ID.findall(match[2])]
    return text.strip(), list(dict.fromkeys(cited_ids))
