"""An instruction with its answer, source and constraints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from casewright.finetune.example import TrainingExample
from casewright.planner import Prompt
from casewright.planner.spans import normalized

#: The task of an unchanged instruction's training example, and of an evolved instruction's.
TASK, EVOLVED_TASK = "instruction", "instruction:evolved"
#: Control characters other than white space, and lone surrogates.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on an answer; ``kind`` is a key of ``RULES``, ``wording`` a text for prompts."""

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wording: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction and its answer.

    Attributes:
        id: Unique in the data set; an evolved instruction's id ends with its constraints' kinds.
        source: The data set's name, split and row number in one text.
        original: The prompt before constraints were added; empty if none were added.
    """

    id: str
    source: str
    prompt: str
    answer: str
    constraints: tuple[Constraint, ...] = ()
    original: str = ""

    @property
    def characters(self) -> int:
        """The number of characters of prompt and answer together."""
        return len(self.prompt) + len(self.answer)

    @property
    def is_readable(self) -> bool:
        """True if prompt and answer are Unicode without control characters."""
        return not (_UNREADABLE.search(self.prompt) or _UNREADABLE.search(self.answer))

    @property
    def key(self) -> str:
        """The case-folded prompt with single spaces; duplicates have equal keys."""
        return normalized(self.prompt)

    def to_example(self) -> TrainingExample:
        """Return the instruction as a training example."""
        task = EVOLVED_TASK if self.original else TASK
        return TrainingExample(self.id, task, self.source, Prompt("", self.prompt), self.answer)
