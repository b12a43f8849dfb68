"""What a message of the corpus asks for, read off its gold plan."""

from __future__ import annotations

from typing import Final

from casewright.finetune.evaluation.verdict import MULTI_STEP, plan_class
from casewright.planner import AnnotatedQuery
from casewright.planner.shape import context_fields
from casewright.tools import NO_EVIDENCE

ONE, CHAIN, SEVERAL, NOTHING = "one look-up", "chain of look-ups", "several asks", "unanswerable"
#: Every message is of one of these.
CLASSES: Final = (ONE, CHAIN, SEVERAL, NOTHING)
USED, DECOY = "open page used", "open page as decoy"


def class_of(query: AnnotatedQuery) -> str:
    """Return a message's class, one of ``CLASSES``.

    A chain is one ask whose last look-up needs the others; several asks have plans of several ends.
    """
    if NO_EVIDENCE.name in query.plan.tools:
        return NOTHING
    if plan_class(query.plan) == MULTI_STEP:
        return SEVERAL
    return CHAIN if len(query.plan.steps) > 1 else ONE


def page_of(query: AnnotatedQuery) -> str:
    """Return ``USED`` or ``DECOY`` for a message with an open page; empty for one without."""
    if not query.record.context:
        return ""
    return USED if context_fields(query.plan) else DECOY
