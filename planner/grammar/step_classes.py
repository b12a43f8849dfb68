"""What a line of a plan knows of the steps before it: the class of each one's result fields.

A plan refers to fields of earlier steps, and which fields there are differs from plan to plan.
Rules of llguidance can carry a number of 64 bits (its docs/parametric.md); ours carry, for each
earlier step, which of the toolbox's distinct sets of result fields it has: a bit for each set
where that fits, since such rules compile faster, and the set's number otherwise. With n sets a
number takes ceil(log2(n + 1)) bits and the last step needs none, so a plan has at most
64 / ceil(log2(n + 1)) + 1 steps, rounded down: 13 for 31 sets, 11 for 63, 10 for 127. Where a
request admits more, the number of steps is lowered, never a check.
"""

from __future__ import annotations

from casewright.planner.grammar.bounds import STEPS

#: Bits of the number that a rule carries.
BITS = 64


class StepClasses:
    """The sets of result fields of a toolbox, numbered from 1; 0 is a step without results.

    Args:
        fields: The distinct sets that can be referred to, none of them empty.
        max_steps: The request's budget.

    Attributes:
        fields: The same.
        steps: Steps that a plan can have.
    """

    def __init__(self, fields: list[tuple[str, ...]], max_steps: int) -> None:
        self.fields = fields
        width = len(fields).bit_length()
        self.steps = min(max_steps, STEPS, BITS // width + 1 if width else STEPS)
        self._one_bit = len(fields) * (self.steps - 1) <= BITS
        self._width = len(fields) if self._one_bit else width

    def number(self, fields: tuple[str, ...]) -> int:
        """Return the number of a set; 0 where it cannot be referred to."""
        return self.fields.index(fields) + 1 if fields in self.fields else 0

    def told(self, step: int, number: int) -> str:
        """Return what a rule carries once the step has results of a class."""
        if not number:
            return "_"
        at = (step - 1) * self._width
        return f"set_bit({at + number - 1})" if self._one_bit else f"bit_or({number << at})"

    def known(self, step: int, number: int) -> str:
        """Return the condition that the step has results of a class."""
        at = (step - 1) * self._width
        if self._one_bit:
            return f"%if bit_set({at + number - 1})"
        return f"%if eq([{at}:{at + self._width}],{number})"
