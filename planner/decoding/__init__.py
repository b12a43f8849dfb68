"""Constrained decoding of plans by a language model, with cached key/value states."""

from casewright.planner.decoding.decoder import Decoder
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, greedy
from casewright.planner.decoding.session import DecodingSession
from casewright.planner.decoding.writing import Written

__all__ = ["Choose", "Decoder", "DecodingLimits", "DecodingSession", "Written", "greedy"]
