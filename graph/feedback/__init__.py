"""Relevance feedback as a graph: it searches, judges the results, and searches again."""

from casewright.graph.feedback.chat_judge import ChatJudge
from casewright.graph.feedback.loop import FeedbackGraph, build_feedback
from casewright.graph.feedback.retriever import FeedbackRetriever
from casewright.graph.feedback.search import FeedbackSearch
from casewright.graph.feedback.state import (
    FeedbackInput,
    FeedbackLimits,
    FeedbackOutput,
    FeedbackResult,
    Reason,
)

__all__ = [
    "ChatJudge",
    "FeedbackGraph",
    "FeedbackInput",
    "FeedbackLimits",
    "FeedbackOutput",
    "FeedbackResult",
    "FeedbackRetriever",
    "FeedbackSearch",
    "Reason",
    "build_feedback",
]
