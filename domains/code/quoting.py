"""The code domain's generator, which quotes code in full and uses no language model."""

from __future__ import annotations

from casewright.graph import Generation, GenerationRequest


class CodeQuoter:
    """A generator that quotes every result of the final steps, each below its source.

    ``ExtractiveGenerator`` picks and joins sentences, which suits prose. Code is quoted unchanged,
    even if it looks like a citation (``errors[E404]``), since citations are returned separately.
    """

    name = "extractive"  # as ``ExtractiveGenerator``, which this generator replaces

    def generate(self, request: GenerationRequest) -> Generation:
        """Return the quotations with citations; see ``Generator``."""
        lines: list[str] = []
        final_items = [item for item in request.evidence if item.final]
        for item in final_items:
            lines += ["", f"{item.source or item.tool} [{item.id}]", item.text]
        if not request.evidence and not request.missing:
            lines = ["No look-up was needed for this."]
        if request.missing:
            lines += [("Missing: " if final_items else "") + " ".join(request.missing)]
        ids = [item.id for item in final_items]
        return Generation("\n".join(lines).strip("\n"), generator=self.name, citations=ids)

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """Return the result of ``generate``; nothing is awaited."""
        return self.generate(request)
