"""Multi-hop questions as a test of feedback: all paragraphs that a question needs are relevant.

HotpotQA (Yang et al. 2018), 2WikiMultihopQA (Ho et al. 2020) and MuSiQue (Trivedi et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from casewright.bench.feedback.sets import FeedbackQuestion, FeedbackSet
from casewright.bench.legal.multihop import read_items
from casewright.bench.legal.paragraphs import Paragraph
from casewright.errors import InputError
from casewright.stores import Case
from casewright.stores.case import case_id


def feedback_set(file: Path, name: str) -> FeedbackSet:
    """Read a set: a case of every distinct paragraph of the file, and every question.

    Cases are ordered by title and text, so that nothing of a question or of its labels is in them.

    Args:
        file: One JSON object a line, in the form of HotpotQA or of MuSiQue.
        name: What to call the set.

    Raises:
        InputError: A line has another form, a question has no id or that of another one, or fewer
            than two supporting paragraphs; or the file holds no question.
    """
    items = list(read_items(file))
    cases = {
        paragraph: _case(paragraph, name)
        for paragraph in sorted({paragraph for _, all_, _ in items for paragraph in all_})
    }
    questions: dict[str, FeedbackQuestion] = {}
    for item, _, supporting in items:
        key = _key(item, file)
        if key in questions:
            raise InputError(f"{file}: two questions have the id {key!r}. Give each its own.")
        if len(supporting) < 2:
            raise InputError(
                f"{file}, question {key!r}: it has {len(supporting)} supporting paragraphs. A "
                "question of several hops has two at least."
            )
        relevant = frozenset(cases[paragraph].id for paragraph in supporting)
        questions[key] = FeedbackQuestion(key, str(item["question"]).strip(), relevant)
    if not questions:
        raise InputError(f"{file} holds no question. Give one JSON object a line.")
    return FeedbackSet(name, "paragraphs", list(cases.values()), list(questions.values()))


def _key(item: Mapping[str, Any], file: Path) -> str:
    key = item.get("_id", item.get("id"))
    if not isinstance(key, str) or not key:
        raise InputError(
            f"{file}: the question {str(item['question'])!r:.80} has no id. Give it one as '_id' "
            "or 'id': it says which half a question belongs to."
        )
    return key


def _case(paragraph: Paragraph, name: str) -> Case:
    problem = {"title": paragraph.title, "text": paragraph.text}
    case = Case(problem, paragraph.text, metadata={"title": paragraph.title})
    return replace(case, id=case_id(case, f"bench_feedback_{name}"))
