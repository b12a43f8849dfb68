"""Questions for a tool that no training has shown: the paper's ``compatible_products``.

REAPER, section 5.5: the tool's description and an example stand in the prompt, and nothing of it in
training. The paper shows the plan for one query, the first here; the others are this project's.
"""

from __future__ import annotations

from casewright.planner import AnnotatedQuery

NAME = "compatible_products"
_TOOL = {
    "name": NAME,
    "description": "Finds products that fit a device which is named: cartridges, cases, chargers.",
    "parameters": {"query": "the part, and the device that it is for"},
    "results": ["product_id", "title"],
    "example": {"query": "strap for a Pellow Watch 2", "plan": f"s1 = {NAME}(query=question)"},
}
_ASKED = (
    "ink cartridge for HP 4650",
    "Which lens cap goes with my Norvik 50 mm?",
    "a charger that works with the Pellow Mini",
    "replacement bags for a Dustin V3",
    "I need a case that fits the Sonara Galaxy 12",
    "what filter belongs in a Brewline 200",
)


def compatible_queries() -> list[AnnotatedQuery]:
    """Return the questions, each with the tool and its plan."""
    return [
        AnnotatedQuery.read(
            {
                "id": f"compatible-{number}",
                "query": asked,
                "plan": f"s1 = {NAME}(query=question)",
                "class": NAME,
                "tools_extra": [_TOOL],
            }
        )
        for number, asked in enumerate(_ASKED, 1)
    ]
