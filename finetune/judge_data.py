"""Labelled questions for the offline judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.stores import CaseStore
from casewright.stores.feedback import SentenceStrategy, Strategy


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, and the ids of all cases relevant to it."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A store of cases, and labelled questions about them.

    ``strategies`` are the searches of later rounds; the judge is trained on the rounds of all.
    ``origin`` are facts about the set, which are stored with the judge.
    """

    name: str
    store: CaseStore
    training: Sequence[LabelledQuestion]
    test: Sequence[LabelledQuestion]
    strategies: Sequence[Strategy] = (SentenceStrategy(),)
    origin: Mapping[str, Any] = field(default_factory=dict)
