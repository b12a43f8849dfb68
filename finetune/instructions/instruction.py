"""An instruction and its answer, where they come from, and what they are checked by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.constraint import Constraint, holds
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, Prompt, render_prompt
from casewright.planner.request import Turn
from casewright.planner.spans import normalized
from casewright.tools import Toolbox

#: The tasks' names in training sets.
TASK, EVOLVED_TASK, TOOLS_TASK = "instruction", "instruction:evolved", "instruction:tools"
#: Control characters but for white space, and halves of surrogate pairs.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """An instruction whose answer is a plan: a query with the toolbox and dialogue of its own."""

    query: AnnotatedQuery
    toolbox: Toolbox
    history: tuple[Turn, ...] = ()

    @property
    def request(self) -> PlanRequest:
        """What a planner is asked."""
        return PlanRequest(self.query.query, self.toolbox, history=self.history)

    @property
    def plan(self) -> Plan:
        """The gold plan."""
        return self.query.plan


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction and its answer.

    Attributes:
        id: Unique among its reader's: ``"reader:record"``; an evolved one adds its constraints.
        source: The reader's name, the file and the place in it.
        prompt: What is asked, whole; for a plan, what the planner's prompt asks.
        answer: The answer; a plan's text where ``planned`` is given.
        planned: The query and its tools, where the answer is a plan.
        labels: All answers that its task knows, where they are few.
        original: What was asked before it was evolved; empty where it was not.
    """

    id: str
    source: str
    prompt: str
    answer: str
    planned: PlannedQuery | None = None
    labels: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    original: str = ""

    @property
    def characters(self) -> int:
        """The length of prompt and answer together."""
        return len(self.prompt) + len(self.answer)

    @property
    def readable(self) -> bool:
        """Whether prompt and answer are texts: Unicode without control characters."""
        return not (_NO_TEXT.search(self.prompt) or _NO_TEXT.search(self.answer))

    def satisfied(self) -> bool:
        """Say whether the answer keeps every constraint."""
        return all(holds(one, self.original, self.answer) for one in self.constraints)

    def key(self) -> str:
        """Return the prompt in one case with single spaces: what duplicates share."""
        return normalized(self.prompt)

    def to_example(self) -> TrainingExample:
        """Return it as a training example; a plan's prompt keeps the seam that a planner's has."""
        prompt, task = Prompt("", self.prompt), TASK
        if self.planned is not None:
            prompt, task = render_prompt(self.planned.request), TOOLS_TASK
        if self.original:
            task = EVOLVED_TASK
        return TrainingExample(self.id, task, self.source, prompt, self.answer)


def planned_instruction(id_: str, source: str, planned: PlannedQuery) -> Instruction:
    """Return the instruction to write this plan, in the planner's own prompt.

    Raises:
        PlanError: The plan is not valid for its request.
    """
    request = planned.request
    request.validate(planned.plan)
    return Instruction(id_, source, str(render_prompt(request)), str(planned.plan), planned)
