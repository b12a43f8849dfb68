"""Relevance feedback: judges of search results, and strategies that search with verdicts."""

from casewright.stores.feedback.judge import (
    AsyncJudge,
    Candidate,
    Judge,
    JudgeRequest,
    Verdicts,
    case_text,
    checked,
)
from casewright.stores.feedback.offline_judge import JudgeModel, OfflineJudge
from casewright.stores.feedback.strategies import (
    Feedback,
    NeighbourStrategy,
    RocchioStrategy,
    SentenceStrategy,
    Strategy,
    TextStrategy,
)

__all__ = [
    "AsyncJudge",
    "Candidate",
    "Feedback",
    "Judge",
    "JudgeModel",
    "JudgeRequest",
    "NeighbourStrategy",
    "OfflineJudge",
    "RocchioStrategy",
    "SentenceStrategy",
    "Strategy",
    "TextStrategy",
    "Verdicts",
    "case_text",
    "checked",
]
