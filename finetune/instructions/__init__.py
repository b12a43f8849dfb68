"""Generic instruction data, and its evolution by constraints.

REAPER (Joshi et al. 2024, section 4.2.4) mixes generic instructions among the plans, so that a
planner goes on following instructions.
"""

from casewright.finetune.instructions.constraint import KINDS, Constraint, holds
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.mixture import (
    InstructionSettings,
    InstructionSource,
    Taken,
    instructions,
    tool_queries,
)
from casewright.finetune.instructions.readers.registry import READERS, Reader, reader
from casewright.finetune.instructions.rules import RuleEvolver

__all__ = [
    "KINDS",
    "READERS",
    "Constraint",
    "Instruction",
    "InstructionSettings",
    "InstructionSource",
    "PlannedQuery",
    "Reader",
    "RuleEvolver",
    "Taken",
    "holds",
    "instructions",
    "reader",
    "tool_queries",
]
