"""Legal question answering from decided cases (CBR-RAG, Wiratunga et al. 2024)."""

from casewright.domains.legal.alqa import read_alqa
from casewright.domains.legal.cases import CONTEXT_FORMS, context_text, qa_case, qa_schema
from casewright.domains.legal.chat_entities import ChatEntityExtractor, read_with_chat
from casewright.domains.legal.entities import extract_entities
from casewright.domains.legal.question_pairs import (
    CasePair,
    PairQuestion,
    PairQuestions,
    entity_pairs,
    write_questions,
)

__all__ = [
    "CONTEXT_FORMS",
    "CasePair",
    "ChatEntityExtractor",
    "PairQuestion",
    "PairQuestions",
    "context_text",
    "entity_pairs",
    "extract_entities",
    "qa_case",
    "qa_schema",
    "read_alqa",
    "read_with_chat",
    "write_questions",
]
