"""Generic instruction data, and its evolution.

REAPER (Joshi et al. 2024) mixes generic instructions among the plans, so that a planner goes on
following instructions: what they are, and constraints that are added to them, stand here.
"""

from casewright.finetune.instructions.chat_evolver import ChatEvolution, ChatEvolver
from casewright.finetune.instructions.constraint import KINDS, Constraint, holds
from casewright.finetune.instructions.evolution import RULES, RuleEvolver
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.mixture import (
    instructions,
    read_source,
    read_sources,
    tool_queries,
)
from casewright.finetune.instructions.readers.registry import (
    READERS,
    Reader,
    contaminated,
    licences,
    reader,
)
from casewright.finetune.instructions.settings import InstructionSettings, InstructionSource
from casewright.finetune.instructions.shares import equal_shares
from casewright.finetune.instructions.tool_rules import TOOL_RULES

__all__ = [
    "KINDS",
    "READERS",
    "RULES",
    "TOOL_RULES",
    "ChatEvolution",
    "ChatEvolver",
    "Constraint",
    "Instruction",
    "InstructionSettings",
    "InstructionSource",
    "PlannedQuery",
    "Reader",
    "RuleEvolver",
    "contaminated",
    "equal_shares",
    "holds",
    "instructions",
    "licences",
    "read_source",
    "read_sources",
    "reader",
    "tool_queries",
]
