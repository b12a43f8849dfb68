"""Generic instruction data, and its evolution.

REAPER (Joshi et al. 2024) mixes generic instructions among the plans, so that a planner goes on
following instructions: what they are, and constraints that are added to them, stand here.
"""

from casewright.finetune.instructions.chat_evolver import ChatEvolution, ChatEvolver
from casewright.finetune.instructions.constraint import KINDS, Constraint, holds
from casewright.finetune.instructions.evolution import RuleEvolver
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.mixture import Taken, instructions, tool_queries
from casewright.finetune.instructions.readers.registry import READERS, Reader, reader
from casewright.finetune.instructions.settings import InstructionSettings, InstructionSource

__all__ = [
    "KINDS",
    "READERS",
    "ChatEvolution",
    "ChatEvolver",
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
