"""Writing a plan with a language model: key/value states that are kept, tokens that are forced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.decoding.conversation import Conversation
    from casewright.planner.decoding.decoder import Decoder

__all__ = [
    "Choose",
    "Conversation",
    "Decoder",
    "Limits",
    "Written",
    "greedy",
]


def __getattr__(name: str) -> Any:
    # They import transformers, which a small model that NumPy computes does without.
    if name == "Decoder":
        from casewright.planner.decoding.decoder import Decoder

        return Decoder
    if name == "Conversation":
        from casewright.planner.decoding.conversation import Conversation

        return Conversation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
