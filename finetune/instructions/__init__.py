"""Generic instructions for training, of which some are *evolved*: they get constraints.

REAPER (Joshi et al. 2024, section 4.2.4) mixes generic instructions among the plans, so that a
planner does not forget how to follow instructions.
"""

from casewright.finetune.instructions.instruction import Constraint, Instruction
from casewright.finetune.instructions.mixture import (
    InstructionSample,
    InstructionSettings,
    InstructionSource,
    instructions,
)
from casewright.finetune.instructions.rules import RULES, Rule, RuleEvolver, holds

__all__ = [
    "RULES",
    "Constraint",
    "Instruction",
    "InstructionSample",
    "InstructionSettings",
    "InstructionSource",
    "Rule",
    "RuleEvolver",
    "holds",
    "instructions",
]
