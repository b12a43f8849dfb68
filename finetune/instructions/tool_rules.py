"""Rules that evolve instructions whose answer is a plan: other tools, or tools that are forbidden.

A planner that follows its tool list is what generic instructions are mixed in for: without them,
REAPER (Joshi et al. 2024) followed a changed tool list in 0.23 of cases.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from casewright.errors import CasewrightError
from casewright.finetune.instructions.constraint import Constraint
from casewright.finetune.instructions.instruction import (
    Instruction,
    PlannedQuery,
    planned_instruction,
)
from casewright.finetune.instructions.rule import WORDINGS
from casewright.finetune.instructions.words import stem, stems
from casewright.planner import AnnotatedQuery, Plan, Step
from casewright.tools import NO_EVIDENCE, Toolbox

_Proposal = tuple[PlannedQuery, Constraint] | None
_EMPTY = Plan((Step(NO_EVIDENCE.name),))
#: What descriptions of any tools share.
_SHARED = """
based calculate calculates compute data details determine fetch find finds format function gets
given information list name number object output parameters provide provided response result
results retrieve retrieves return returns specific specified string structure successful tool type
user value
"""
_COMMON = frozenset(map(stem, _SHARED.split()))


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for plans, which proposes another query and the constraint; see ``Rule``."""

    name: str
    propose: Callable[[PlannedQuery, random.Random], _Proposal]

    def applies(self, instruction: Instruction) -> bool:
        """Say whether the rule applies: only to plans, and once."""
        return self._evolved(instruction, random.Random(0)) is not None

    def apply(self, instruction: Instruction, rng: random.Random) -> Instruction:
        """Return the instruction with other tools or a tool forbidden, and the plan for it.

        Raises:
            ValueError: The rule does not apply.
        """
        if (evolved := self._evolved(instruction, rng)) is None:
            raise ValueError(f"The rule {self.name} does not apply to {instruction.id}.")
        return evolved

    def _evolved(self, instruction: Instruction, rng: random.Random) -> Instruction | None:
        planned = instruction.planned
        if planned is None or instruction.constraints:
            return None
        if (proposed := self.propose(planned, rng)) is None:
            return None
        changed, constraint = proposed
        id_ = f"{instruction.id}~{self.name}"
        try:
            made = planned_instruction(id_, instruction.source, changed)
        except CasewrightError:
            # The longer question is no question any more: it passes the limit on its length.
            return None
        return replace(made, constraints=(constraint,), original=instruction.prompt)


def _unneeded(planned: PlannedQuery) -> list[str]:
    keep = {*planned.plan.tools, NO_EVIDENCE.name}
    return [name for name in planned.toolbox.names if name not in keep]


def _with(planned: PlannedQuery, toolbox: Toolbox, plan: Plan, wording: str = "") -> PlannedQuery:
    query = planned.query
    text = query.query
    if wording:
        text = text.rstrip()
        text += f" {wording}" if text.endswith((".", "!", "?", '"', "'")) else f". {wording}"
    record = query.record.model_copy(update={"query": text})
    return PlannedQuery(AnnotatedQuery(record, plan, query.label), toolbox, planned.history)


def _only(toolbox: Toolbox) -> Constraint:
    return Constraint("only_tools", {"tools": list(toolbox.names)})


def _fewer(planned: PlannedQuery, rng: random.Random) -> _Proposal:
    unneeded = _unneeded(planned)
    if not unneeded or (planned.plan == _EMPTY and len(unneeded) < 2):
        return None
    most = len(unneeded) - (planned.plan == _EMPTY)
    left_out = rng.sample(unneeded, rng.randint(1, most))
    toolbox = planned.toolbox.without(*left_out)
    return _with(planned, toolbox, planned.plan), _only(toolbox)


def _forbidden(planned: PlannedQuery, rng: random.Random) -> _Proposal:
    if planned.plan == _EMPTY or not (unneeded := _unneeded(planned)):
        return None
    tool = rng.choice(unneeded)
    wording = rng.choice(WORDINGS["forbidden_tool"]).format(tool=tool)
    constraint = Constraint("without_tool", {"tool": tool}, wording)
    return _with(planned, planned.toolbox, planned.plan, wording), constraint


def _withdrawn(planned: PlannedQuery, rng: random.Random) -> _Proposal:
    plan = planned.plan
    used = sorted(set(plan.tools))
    if len(used) < 2 or any(True for step in plan.steps for _ in step.references()):
        return None
    # Where a tool that stays is much like the one that goes, it may do its work too.
    box = planned.toolbox
    alone = [tool for tool in used if not _alike(box, [tool], list(box.without(tool).names))]
    if not alone:
        return None
    gone = rng.choice(alone)
    toolbox = box.without(gone)
    rest = Plan(tuple(step for step in plan.steps if step.tool != gone))
    return _with(planned, toolbox, rest, rng.choice(WORDINGS["partly"])), _only(toolbox)


def _none_left(planned: PlannedQuery, rng: random.Random) -> _Proposal:
    unneeded = _unneeded(planned)
    used = sorted(set(planned.plan.tools) - {NO_EVIDENCE.name})
    if not used or not unneeded or _alike(planned.toolbox, used, unneeded):
        return None
    toolbox = planned.toolbox.without(*used)
    return _with(planned, toolbox, _EMPTY), _only(toolbox)


def _alike(toolbox: Toolbox, some: list[str], others: list[str]) -> bool:
    """Say whether a tool's name or description shares a word with those of another group."""

    def own(names: list[str]) -> set[str]:
        told = (f"{name.replace('_', ' ')} {toolbox[name].description}" for name in names)
        return {part for text in told for part in stems(text)} - _COMMON

    return bool(own(some) & own([n for n in others if n != NO_EVIDENCE.name]))


TOOL_RULES = (
    ToolRule("fewer_tools", _fewer),
    ToolRule("forbidden_tool", _forbidden),
    ToolRule("withdrawn_tool", _withdrawn),
    ToolRule("no_tool_left", _none_left),
)
