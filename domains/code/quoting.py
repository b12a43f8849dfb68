"""The domain's generator without a language model: it quotes code as it is written, in full."""

from __future__ import annotations

from casewright.graph import Generation, GenerationRequest


class CodeQuoter:
    """Quotes every result of the steps that were asked for, each below its place.

    ``ExtractiveGenerator`` picks the nearest sentences of what is long and joins their lines, which
    is right for prose; of code, who asks for all of a method wants all of it, line by line. Nothing
    in it is altered, not even what looks like a citation, ``errors[E404]``: what the answer cites
    is told beside the text.
    """

    name = "extractive"

    def generate(self, request: GenerationRequest) -> Generation:
        """Return quotations with citations; see ``Generator``."""
        lines = ["No language model is set up, so this answer quotes what was found."]
        asked = [item for item in request.evidence if item.final]
        for item in asked:
            lines += ["", f"{item.source or item.tool} [{item.id}]", item.text]
        if not request.evidence and not request.missing:
            lines = [
                "No look-up was needed for this, and no language model is set up to talk with."
            ]
        if request.missing:
            lines += ["Missing: " + " ".join(request.missing)]
        return Generation(
            "\n".join(lines), generator=self.name, citations=[item.id for item in asked]
        )

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """The same; it takes no time and waits for nothing."""
        return self.generate(request)
