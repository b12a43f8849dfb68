"""A row of a table: what is trained, what is asked, and what the paper has there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from casewright.bench.reaper.paper import NOTHING, Published
from casewright.finetune.evaluation import EvaluationItem
from casewright.finetune.examples.make_training_set import Ingredients
from casewright.finetune.examples.query_pool import queries_hash
from casewright.finetune.recipe.data_section import DataSection
from casewright.planner import AnnotatedQuery

FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Training:
    """A training; rows may share one.

    Attributes:
        name: Of its folder.
        data: How its set is made.
        given: Of what.
    """

    name: str
    data: DataSection
    given: Ingredients

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the training set, JSON-plain."""
        return {
            "data": self.data.model_dump(mode="json"),
            "queries": queries_hash(self.given.queries),
            "toolbox": self.given.toolbox.fingerprint(),
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions to measure by, and the plan cases that planners may be shown.

    Attributes:
        name: In tables.
        items: The questions with their gold plans.
        cases: None of them is one of the questions.
    """

    name: str
    items: tuple[EvaluationItem, ...]
    cases: tuple[AnnotatedQuery, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the answers of a planner, JSON-plain."""
        return {
            "questions": queries_hash([item.query for item in self.items]),
            "toolboxes": sorted({item.request.toolbox.fingerprint() for item in self.items}),
            "cases": queries_hash(self.cases),
        }

    def limited(self, limit: int, seed: int) -> QuestionSet:
        """Return at most ``limit`` of the questions, drawn by the seed, in their order."""
        if limit >= len(self.items):
            return self
        places = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=tuple(self.items[place] for place in places))


@dataclass(frozen=True, slots=True)
class Row:
    """A row.

    Attributes:
        table: One of ``TABLES``.
        name: In words.
        training: ``None`` where it cannot be trained; ``note`` says why.
        questions: What is asked.
        paper: The paper's figures.
        note: What must be known to read it.
    """

    table: str
    name: str
    training: Training | None
    questions: QuestionSet
    paper: Published = NOTHING
    note: str = ""


def trainings_of(rows: Sequence[Row]) -> list[Training]:
    """Return the trainings of rows, each once, in order."""
    found = {row.training.name: row.training for row in rows if row.training is not None}
    return list(found.values())
