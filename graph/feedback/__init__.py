"""Relevance feedback as a graph: search, judge, search again."""

from casewright.graph.feedback.limits import FeedbackLimits
from casewright.graph.feedback.loop import FeedbackGraph, build_feedback
from casewright.graph.feedback.state import FeedbackInput, FeedbackOutput, FeedbackResult, Reason

__all__ = [
    "FeedbackGraph",
    "FeedbackInput",
    "FeedbackLimits",
    "FeedbackOutput",
    "FeedbackResult",
    "Reason",
    "build_feedback",
]
