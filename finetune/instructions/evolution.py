"""Evolution by rules: one to three constraints that go together, and an answer that keeps all."""

from __future__ import annotations

import random
from collections import Counter

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import Rule
from casewright.finetune.instructions.rules import RULES
from casewright.finetune.instructions.tool_rules import TOOL_RULES

#: Constraints that an instruction is given at most.
MOST_CONSTRAINTS = 3


class RuleEvolver:
    """Evolves instructions by rules; rules that were used seldom are preferred.

    Args:
        rng: The source of randomness: the same calls in the same order give the same results.
        most: Constraints that an instruction is given at most, 1 to 3.
    """

    def __init__(self, rng: random.Random, most: int = MOST_CONSTRAINTS) -> None:
        self._rng = rng
        self._most = most
        self.used: Counter[str] = Counter()

    def evolve(self, instruction: Instruction) -> Instruction | None:
        """Return the instruction evolved, every constraint verified; nothing where no rule fits."""
        if instruction.planned is not None:
            return self._with_other_tools(instruction)
        return self._compose(instruction, self._rng.randint(1, self._most))

    def _with_other_tools(self, instruction: Instruction) -> Instruction | None:
        fitting = [rule for rule in TOOL_RULES if rule.applies(instruction)]
        for rule in sorted(fitting, key=lambda rule: self._preference(rule.name)):
            evolved = rule.apply(instruction, self._rng)
            if evolved.satisfied():
                self.used[rule.name] += 1
                return evolved
        return None

    def _compose(self, instruction: Instruction, count: int) -> Instruction | None:
        evolved = instruction
        # Changes come before what is put around them, and what is observed comes last.
        for rule in sorted(self._pick(instruction, count), key=lambda rule: rule.stage):
            if rule.applies(evolved):
                tried = rule.apply(evolved, self._rng)
                # A phrase that is to be exact, for example, breaks a constraint on the letters.
                if tried.satisfied():
                    evolved = tried
                    self.used[rule.name] += 1
        return None if evolved is instruction else evolved

    def _pick(self, instruction: Instruction, count: int) -> list[Rule]:
        fitting = [rule for rule in RULES if rule.applies(instruction)]
        picked: list[Rule] = []
        for rule in sorted(fitting, key=lambda rule: self._preference(rule.name)):
            if len(picked) < count and not any(rule.parts & other.parts for other in picked):
                picked.append(rule)
        return picked

    def _preference(self, name: str) -> float:
        return (1 + self.used[name]) * self._rng.random()
