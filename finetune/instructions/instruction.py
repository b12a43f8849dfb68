"""An instruction and its answer, their source and their constraints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.constraint import Constraint, holds
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, Prompt, render_prompt
from casewright.planner.spans import normalized
from casewright.tools import Toolbox

#: The tasks' names in training sets.
TASK, EVOLVED_TASK, TOOLS_TASK = "instruction", "instruction:evolved", "instruction:tools"
#: Control characters other than white space, and lone surrogates.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """An instruction whose answer is a plan: a query with a toolbox of its own."""

    query: AnnotatedQuery
    toolbox: Toolbox

    @property
    def request(self) -> PlanRequest:
        """The request to a planner."""
        return PlanRequest(self.query.query, self.toolbox)

    @property
    def plan(self) -> Plan:
        """The gold plan."""
        return self.query.plan


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction and its answer.

    Attributes:
        id: Unique among its reader's: ``"reader:record"``; an evolved one adds its constraints.
        source: The reader's name, the file and the position in it.
        prompt: The complete prompt; for a plan, the planner's.
        answer: The answer; for a plan, its text.
        planned: The query and its tools, if the answer is a plan.
        original: The prompt before it was evolved; empty if it was not.
    """

    id: str
    source: str
    prompt: str
    answer: str
    planned: PlannedQuery | None = None
    constraints: tuple[Constraint, ...] = ()
    original: str = ""

    @property
    def characters(self) -> int:
        """The length of prompt and answer together."""
        return len(self.prompt) + len(self.answer)

    @property
    def readable(self) -> bool:
        """True if prompt and answer are Unicode without control characters."""
        return not (_UNREADABLE.search(self.prompt) or _UNREADABLE.search(self.answer))

    def satisfied(self) -> bool:
        """Return whether the answer keeps every constraint."""
        return all(holds(constraint, self.answer) for constraint in self.constraints)

    def key(self) -> str:
        """Return the prompt case-folded with single spaces, which duplicates share."""
        return normalized(self.prompt)

    def to_example(self) -> TrainingExample:
        """Return it as a training example; a plan's prompt has the planner's prefix boundary."""
        prompt, task = Prompt("", self.prompt), TASK
        if self.planned is not None:
            prompt, task = render_prompt(self.planned.request), TOOLS_TASK
        if self.original:
            task = EVOLVED_TASK
        return TrainingExample(self.id, task, self.source, prompt, self.answer)


def planned_instruction(id_: str, source: str, planned: PlannedQuery) -> Instruction:
    """Return the instruction to write a plan, in the planner's prompt; ``PlanError`` if invalid."""
    request = planned.request
    request.validate(planned.plan)
    return Instruction(id_, source, str(render_prompt(request)), str(planned.plan), planned)
