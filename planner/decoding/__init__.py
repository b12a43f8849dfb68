"""Writing a plan with a language model: key/value states that are kept, tokens that are forced."""

from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.conversation import Conversation
from casewright.planner.decoding.decoder import Decoder
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.written import Written

__all__ = [
    "Choose",
    "Conversation",
    "Decoder",
    "Limits",
    "Written",
    "greedy",
]
