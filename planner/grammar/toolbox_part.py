"""The part of the grammar that depends on the toolbox, for a whole plan and for a single line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from casewright.planner.grammar.calls import REFERENCES, Calls, Expression
from casewright.planner.grammar.terminals import DEFINITIONS, STEPS, fields_after_step
from casewright.tools import ToolSpec

#: The rule of a call in the grammar of a single line.
CALL = "c"
#: Bits of a rule's parameter, and the maximal number of them that count calls of tools.
BITS, COUNTERS = 64, 24


@dataclass(frozen=True, slots=True)
class ToolboxPart:
    """Definitions that depend on the toolbox, and the terminals of the request that they use."""

    text: str
    used: frozenset[str]


class _StepClasses:
    """Distinct sets of result fields of a toolbox, numbered from 1; 0 is a step without results.

    A plan refers to fields of its earlier steps. Rules of llguidance can have a parameter of 64
    bits (its docs/parametric.md); ours encodes the class of each earlier step, which is the set of
    its result fields: one bit a set if that fits, since such rules compile faster, else the set's
    number. With n sets a number takes ceil(log2(n + 1)) bits and the last step needs none, so a
    plan has at most 64 / ceil(log2(n + 1)) + 1 steps, rounded down: 13 for 31 sets, 11 for 63, 10
    for 127. If a request admits more steps, the number of steps is reduced; no check is dropped.

    Attributes:
        fields: The distinct nonempty sets that references can use.
        steps: Maximal number of steps of a plan.
    """

    def __init__(self, fields: list[tuple[str, ...]], max_steps: int, bits: int) -> None:
        self.fields = fields
        width = len(fields).bit_length()
        self.steps = min(max_steps, STEPS, bits // width + 1 if width else STEPS)
        self._one_bit = len(fields) * (self.steps - 1) <= bits
        self._width = len(fields) if self._one_bit else width

    def number(self, fields: tuple[str, ...]) -> int:
        """Return the number of a set; 0 if references cannot use it."""
        return self.fields.index(fields) + 1 if fields in self.fields else 0

    def after(self, step: int, number: int) -> str:
        """Return the new parameter of a rule after the step, whose results have a class."""
        if not number:
            return "_"
        bit = (step - 1) * self._width
        return f"set_bit({bit + number - 1})" if self._one_bit else f"bit_or({number << bit})"

    def condition(self, step: int, number: int) -> str:
        """Return the condition that the step has results of a class."""
        bit = (step - 1) * self._width
        if self._one_bit:
            return f"%if bit_set({bit + number - 1})"
        return f"%if eq([{bit}:{bit + self._width}],{number})"


def line_part(toolbox: Sequence[ToolSpec], supplied: Set[str]) -> ToolboxPart:
    """Return the rules of a single call, named ``CALL``; a terminal matches the references."""
    calls = Calls(toolbox, supplied, chained=False)
    calls.rule(CALL, [call for _, call in calls.tools])
    return _part(calls, [])


class _Counters:
    """Bits of the parameter, above those of the classes, that count calls of tools with a budget.

    If the bits are not sufficient, the tools with the most calls are not counted.
    """

    def __init__(self, most: Mapping[str, int]) -> None:
        self._most = most
        self._ranges: dict[str, tuple[int, int]] = {}
        self.first = BITS
        for tool, calls in sorted(most.items(), key=lambda item: item[1]):
            if self.first - calls.bit_length() >= BITS - COUNTERS:
                self._ranges[tool] = self.first - calls.bit_length(), self.first
                self.first -= calls.bit_length()

    def __contains__(self, tool: str) -> bool:
        return tool in self._ranges

    def range(self, tool: str) -> str:
        first, end = self._ranges[tool]
        return f"[{first}:{end}]"

    def condition(self, tool: str) -> str:
        """Return the condition that another call of a tool is within the budget."""
        return f" %if lt({self.range(tool)},{self._most[tool]})" if tool else ""


def plan_part(
    toolbox: Sequence[ToolSpec], supplied: Set[str], max_steps: int, most: Mapping[str, int]
) -> ToolboxPart:
    """Return the rules of a whole plan, ``start`` among them.

    Args:
        most: Maximal number of calls by tool, for tools that a budget limits.
    """
    counters = _Counters(most)
    some = f"%if gt([0:{counters.first}],0)"
    calls = Calls(toolbox, supplied, chained=max_steps > 1, some_result=some)
    fields: set[tuple[str, ...]] = set()
    if any(call.parametric for _, call in calls.tools):
        fields = {_fields(tool) for tool, _ in calls.tools} - {()}
    if not fields:
        calls = Calls(toolbox, supplied, chained=False)
    classes = _StepClasses(sorted(fields), max_steps, counters.first)
    return _part(calls, [*_lines(calls, classes, counters), *_references(classes)])


def _fields(tool: ToolSpec) -> tuple[str, ...]:
    return tuple(sorted(set(tool.results)))


def _lines(calls: Calls, classes: _StepClasses, counters: _Counters) -> list[str]:
    groups: dict[tuple[int, str], list[Expression]] = {}
    for tool, call in calls.tools:
        counted = tool.name if tool.name in counters else ""
        groups.setdefault((classes.number(_fields(tool)), counted), []).append(call)
    heads = {key: calls.rule(f"c{n}", group).text for n, (key, group) in enumerate(groups.items())}
    last = classes.steps
    if heads.keys() == {(0, "")}:
        head = heads[0, ""]
        lines = [f'k{step}:{head}("\\ns{step + 1} = "k{step + 1})?' for step in range(1, last)]
        return ['start:"s1 = "k1', *lines, f"k{last}:{head}"]
    lines = ['start:"s1 = "k1::0']
    for step in range(1, last):
        # The parameter of later lines has the class of the step's results and a call of its tool.
        either = []
        for n, ((number, counted), head) in enumerate(heads.items()):
            line = f"{head} m{step}::{classes.after(step, number)}"
            if counted:
                # Not a rule around the call: llguidance removes rules of one symbol.
                lines.append(f"u{step}x{n}::_:{line}")
                line = f"u{step}x{n}::incr({counters.range(counted)}){counters.condition(counted)}"
            either.append(line)
        lines += [
            f"k{step}::_:{'|'.join(either)}",
            f'm{step}::_:""|"\\ns{step + 1} = "k{step + 1}::_',
        ]
    ends = [f"{head}{counters.condition(name)}" for (_, name), head in heads.items()]
    return [*lines, f"k{last}::_:{'|'.join(ends)}"]


def _references(classes: _StepClasses) -> list[str]:
    numbers = range(1, len(classes.fields) + 1)
    if not numbers:
        return []
    rules = [f"{REFERENCES}:{'|'.join(f'x{number}::_ F{number}' for number in numbers)}"]
    for number in numbers:
        steps = [f'"s{n}" {classes.condition(n, number)}' for n in range(1, classes.steps)]
        rules += [
            f"x{number}::_:{'|'.join(steps)}",
            f"F{number}:{fields_after_step(classes.fields[number - 1])}",
        ]
    return rules


def _part(calls: Calls, lines: list[str]) -> ToolboxPart:
    defined = [DEFINITIONS[name] for name in DEFINITIONS if name in calls.used]
    text = "\n".join([*lines, *calls.rules, *calls.terminals(), *defined])
    return ToolboxPart(text, frozenset(calls.used))
