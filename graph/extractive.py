"""The generator without a language model, which quotes the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from casewright.graph.evidence import Evidence
from casewright.graph.generator import Generation, GenerationRequest
from casewright.stores import Encoder

#: Most results of one step that are quoted.
QUOTES = 3
#: Longer evidence, in characters, is cut to this many sentences nearest to the question.
LONG, SENTENCES = 320, 4

_CITATION_START = re.compile(r"\[(?=\s*E)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
#: The end of a long line that goes on in the next, which begins no item of a list.
_WRAPPED = re.compile(r"(?<=[^\n]{50})(?<![.!?:;])[ \t]*\n[ \t]*(?![-*•#>|\s]|\(?\w{1,3}[.)])")


class ExtractiveGenerator:
    """Quotes the evidence of each step that was asked for, most relevant sentences first.

    Args:
        encoder: Ranks the sentences of long evidence by similarity to the question; without one,
            the first sentences are quoted.
    """

    name = "extractive"

    def __init__(self, encoder: Encoder | None = None) -> None:
        self._encoder = encoder

    def generate(self, request: GenerationRequest) -> Generation:
        """Return quotations with citations; see ``Generator``."""
        lines = ["No language model is set up, so this answer quotes what was found."]
        quoted: list[str] = []
        for item, sentence in self.sentences(request):
            lines.append(f"- {sentence} [{item.id}]")
            quoted.append(item.id)
        if not request.evidence and not request.missing:
            lines = [
                "No look-up was needed for this, and no language model is set up to talk with."
            ]
        if request.missing:
            lines.append("Missing: " + _tame(" ".join(request.missing)))
        return Generation("\n".join(lines), generator=self.name, citations=quoted)

    def sentences(self, request: GenerationRequest) -> Iterator[tuple[Evidence, str]]:
        """Yield the evidence that is quoted, each with its quotation."""
        for _, members in groupby(request.evidence, key=lambda item: item.step):
            for number, item in enumerate(members):
                if not item.final:
                    yield item, f"Looked up: {_tame(_short(item))}"
                elif number < QUOTES:
                    yield item, _tame(self._quote(request, item))

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """Return the same as ``generate``; it takes some milliseconds and waits for nothing."""
        return self.generate(request)

    def _quote(self, request: GenerationRequest, item: Evidence) -> str:
        if len(item.row) - ("source" in item.row) > 1:
            fields = [(name, self._cut(request, text)) for name, text in _fields(item)]
            return _joined(fields) or item.text
        return self._cut(request, item.text)

    def _cut(self, request: GenerationRequest, text: str) -> str:
        """Return a text, or the sentences of a long one that are nearest to the question."""
        if len(text) <= LONG:
            return " ".join(text.split())
        flowing = _WRAPPED.sub(" ", text)
        sentences = [part for part in _SENTENCE.split(flowing) if part.strip()]
        nearest = sorted(self._nearest(request.question, sentences))
        return " … ".join(" ".join(sentences[i].split()) for i in nearest)[: 2 * LONG]

    def _nearest(self, question: str, sentences: Sequence[str]) -> list[int]:
        if self._encoder is None or len(sentences) <= SENTENCES:
            return list(range(min(SENTENCES, len(sentences))))
        vectors = self._encoder.embed([question, *sentences])
        return [int(i) for i in np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")[:SENTENCES]]


def _tame(text: str) -> str:
    """Return the text with other brackets around what looks like a citation."""
    return _CITATION_START.sub("(", text)


def _short(item: Evidence) -> str:
    return _joined(_fields(item)) or item.text


def _fields(item: Evidence) -> list[tuple[str, str]]:
    """Return the readable fields of a result, without ids."""
    return [
        (name, str(value))
        for name, value in item.row.items()
        if name != "source" and not name.endswith("_id") and value is not None
    ]


def _joined(fields: Sequence[tuple[str, str]]) -> str:
    """Return fields as text, the first without its name."""
    return "; ".join(
        [text if not at else f"{name} {text}" for at, (name, text) in enumerate(fields)]
    )
