"""Rules that evolve an instruction: each adds one constraint, and an answer that keeps it.

Evol-Instruct (Xu et al. 2023, arXiv:2304.12244, section 3.2) has a model add constraints and then
answer anew. A rule adds only what can be verified, and only where the answer that is there keeps
it already or can be brought into its form without being reworded.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casewright.finetune.instructions.constraint import KINDS, Constraint
from casewright.finetune.instructions.instruction import Instruction

#: A constraint's parameters and the answer that keeps it; nothing where a rule does not apply.
Proposal = tuple[Mapping[str, Any], str] | None
Propose = Callable[[Instruction, random.Random], Proposal]
_FILE = Path(__file__).parent / "wordings.toml"
#: How constraints are said, by the rule's name.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
#: When a rule has its turn: it changes the answer's text; it puts something around the answer; it
#: asks for what the finished answer has already.
CHANGE, WRAP, OBSERVE = 0, 1, 2
#: A prompt that ends so waits for the answer: nothing may stand between.
_CUE = (":", "=", ">", "-", "…", "...", ",", '"')
#: How often constraints stand before what is asked, where they may stand after it.
_BEFORE = 0.25


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        name: Unique among the rules; what its constraints are worded by.
        stage: ``CHANGE``, ``WRAP`` or ``OBSERVE``.
        propose: Of an instruction and a source of randomness, the constraint and the answer.
    """

    name: str
    kind: str
    stage: int
    propose: Propose

    @property
    def parts(self) -> frozenset[str]:
        """What of an answer it governs; rules that share a part are not put together."""
        return KINDS[self.kind].parts

    def applies(self, instruction: Instruction) -> bool:
        """Say whether the rule applies; it never does to plans, whose form is fixed."""
        return instruction.planned is None and (
            self.propose(instruction, random.Random(0)) is not None
        )

    def apply(self, instruction: Instruction, rng: random.Random) -> Instruction:
        """Return the instruction with the constraint, and an answer that is meant to keep it.

        Raises:
            ValueError: The rule does not apply.
        """
        proposed = None if instruction.planned else self.propose(instruction, rng)
        if proposed is None:
            raise ValueError(f"The rule {self.name} does not apply to {instruction.id}.")
        parameters, answer = proposed
        wording = rng.choice(WORDINGS[self.name]).format(**_shown(parameters))
        constraints = (*instruction.constraints, Constraint(self.kind, parameters, wording))
        original = asked(instruction)
        return replace(
            instruction,
            id=f"{instruction.id.partition('~')[0]}~{'+'.join(c.kind for c in constraints)}",
            prompt=_with_constraints(original, constraints, rng),
            answer=answer,
            constraints=constraints,
            original=original,
        )


def asked(instruction: Instruction) -> str:
    """Return what was asked before any constraint was added."""
    return instruction.original or instruction.prompt


def _with_constraints(
    original: str, constraints: tuple[Constraint, ...], rng: random.Random
) -> str:
    joined = (" " if rng.random() < 0.7 else "\n").join(one.wording for one in constraints)
    ends = original.rstrip()
    if ends.endswith(_CUE) or rng.random() < _BEFORE:
        return f"{joined}\n\n{original}"
    return f"{ends}\n\n{joined}"


def _shown(parameters: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(parameters)
    if isinstance(count := parameters.get("n"), int):
        for unit in ("word", "sentence", "line", "bullet point"):
            name = unit.replace(" ", "_")
            shown[f"n_{name}s"] = f"one {unit}" if count == 1 else f"{count} {unit}s"
    if isinstance(labels := parameters.get("labels"), (list, tuple)):
        shown["labels"] = ", ".join(f'"{label}"' for label in labels)
    return shown
