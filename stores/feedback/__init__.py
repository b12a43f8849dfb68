"""Relevance feedback: who says what is relevant, and how to search again with it."""

from casewright.stores.feedback.candidate import Candidate, case_text
from casewright.stores.feedback.judge import AsyncJudge, Judge, JudgeRequest, Verdicts, checked
from casewright.stores.feedback.judge_model import JudgeModel
from casewright.stores.feedback.neighbours import NeighbourStrategy
from casewright.stores.feedback.offline_judge import OfflineJudge
from casewright.stores.feedback.recommend import RecommendStrategy
from casewright.stores.feedback.rocchio import RocchioStrategy
from casewright.stores.feedback.sentences import SentenceStrategy
from casewright.stores.feedback.strategy import Feedback, Strategy
from casewright.stores.feedback.text_query import TextStrategy

__all__ = [
    "AsyncJudge",
    "Candidate",
    "Feedback",
    "Judge",
    "JudgeModel",
    "JudgeRequest",
    "NeighbourStrategy",
    "OfflineJudge",
    "RecommendStrategy",
    "RocchioStrategy",
    "SentenceStrategy",
    "Strategy",
    "TextStrategy",
    "Verdicts",
    "case_text",
    "checked",
]
