"""The domain's generator without a language model: it quotes code as it is written, in full."""

from __future__ import annotations

import re

from casewright.graph import Generation, GenerationRequest

#: What looks like a citation. A list in code is none: ``list[Event]`` stays as it is.
_CITATION_START = re.compile(r"\[(?=\s*E\d)")


class CodeQuoter:
    """Quotes every result of the steps that were asked for, each below its place.

    ``ExtractiveGenerator`` picks the nearest sentences of what is long and joins their lines, which
    is right for prose; of code, who asks for all of a method wants all of it, line by line.
    """

    name = "extractive"

    def generate(self, request: GenerationRequest) -> Generation:
        """Return quotations with citations; see ``Generator``."""
        lines = ["No language model is set up, so this answer quotes what was found."]
        asked = [item for item in request.evidence if item.final]
        for item in asked:
            lines += ["", f"{_tame(item.source or item.tool)} [{item.id}]", _tame(item.text)]
        if not request.evidence and not request.missing:
            lines = [
                "No look-up was needed for this, and no language model is set up to talk with."
            ]
        if request.missing:
            lines += ["Missing: " + _tame(" ".join(request.missing))]
        return Generation(
            "\n".join(lines), generator=self.name, citations=[item.id for item in asked]
        )

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """The same; it takes no time and waits for nothing."""
        return self.generate(request)


def _tame(text: str) -> str:
    """Return the text with what looks like a citation in other brackets: it cites nothing."""
    return _CITATION_START.sub("(", text)
