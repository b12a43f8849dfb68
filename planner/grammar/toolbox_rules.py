"""The grammar rules that depend only on the toolbox, for a whole plan or for a single line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from casewright.planner.grammar.calls import REFERENCE_RULE, Calls, Expression
from casewright.planner.grammar.terminals import DEFINITIONS, MAX_GRAMMAR_STEPS, result_field_regex
from casewright.tools import ToolSpec

#: Name of the rule for a call in the grammar of a single line.
CALL_RULE = "c"
#: Number of bits of a rule's parameter in llguidance.
PARAMETER_BITS = 64
#: Maximum number of these bits that count calls.
MAX_COUNTER_BITS = 24


@dataclass(frozen=True, slots=True)
class ToolboxRules:
    """Rules with their terminals in Lark (``text``), and names of all terminals that they use."""

    text: str
    used_terminals: frozenset[str]


class _StepClasses:
    """Encodes which result fields each earlier step of a plan has, for the check of references.

    The class of a step is the set of its result fields; class 0 has no fields. A rule of llguidance
    can have a parameter of 64 bits (its docs/parametric.md). The parameter encodes the class of
    each earlier step. If the bits suffice, each step has a bit for each class, because such rules
    compile faster. Otherwise, each step has the number of its class. With n classes, a number takes
    b = ceil(log2(n + 1)) bits. The last step needs no bits, so a plan has at most 64 / b + 1 steps,
    rounded down: 13 for 31 classes, 11 for 63, 10 for 127. The grammar admits no more steps, even
    if a request does. ``field_sets`` lists the result fields of class 1, class 2, ….
    """

    def __init__(self, field_sets: list[tuple[str, ...]], max_steps: int, bit_count: int) -> None:
        self.field_sets = field_sets
        number_bits = len(field_sets).bit_length()
        encodable_steps = bit_count // number_bits + 1 if number_bits else MAX_GRAMMAR_STEPS
        self.max_steps = min(max_steps, MAX_GRAMMAR_STEPS, encodable_steps)
        self._has_bit_per_class = len(field_sets) * (self.max_steps - 1) <= bit_count
        self._bits_per_step = len(field_sets) if self._has_bit_per_class else number_bits

    def class_number(self, fields: tuple[str, ...]) -> int:
        """Return the number of the class with these result fields; 0 if there is no such class."""
        return self.field_sets.index(fields) + 1 if fields in self.field_sets else 0

    def parameter_after(self, step: int, class_number: int) -> str:
        """Return the rule's parameter, in Lark, after a step of this class; ``_`` is no change."""
        if not class_number:
            return "_"
        bit = (step - 1) * self._bits_per_step
        if self._has_bit_per_class:
            return f"set_bit({bit + class_number - 1})"
        return f"bit_or({class_number << bit})"

    def condition(self, step: int, class_number: int) -> str:
        """Return the condition, in Lark, that the step has this class."""
        bit = (step - 1) * self._bits_per_step
        if self._has_bit_per_class:
            return f"%if bit_set({bit + class_number - 1})"
        return f"%if eq([{bit}:{bit + self._bits_per_step}],{class_number})"


def line_rules(toolbox: Sequence[ToolSpec], request_terminals: Set[str]) -> ToolboxRules:
    """Return the rules of a single line: ``CALL_RULE`` is a call; references are a terminal."""
    calls = Calls(toolbox, request_terminals)
    calls.rule(CALL_RULE, [call for _, call in calls.tool_calls])
    return _all_rules(calls, [])


class _Counters:
    """Counts the calls of tools with a limit, in the highest bits of the rule's parameter.

    If the bits do not suffice, the tools with the highest limits are not counted.

    Attributes:
        range_by_tool: The range of bits of each counted tool, in Lark.
        lowest_bit: The lowest bit of a counter; the bits below it encode the step classes.
    """

    def __init__(self, max_calls: Mapping[str, int]) -> None:
        self._max_calls = max_calls
        self.range_by_tool: dict[str, str] = {}
        self.lowest_bit = PARAMETER_BITS
        for tool, limit in sorted(max_calls.items(), key=lambda item: item[1]):
            first_bit = self.lowest_bit - limit.bit_length()
            if first_bit >= PARAMETER_BITS - MAX_COUNTER_BITS:
                self.range_by_tool[tool] = f"[{first_bit}:{self.lowest_bit}]"
                self.lowest_bit = first_bit

    def condition(self, tool: str) -> str:
        """Return the condition that the budget admits another call; empty if ``tool`` is empty."""
        return f" %if lt({self.range_by_tool[tool]},{self._max_calls[tool]})" if tool else ""


def plan_rules(
    toolbox: Sequence[ToolSpec],
    request_terminals: Set[str],
    max_steps: int,
    max_calls: Mapping[str, int],
) -> ToolboxRules:
    """Return the rules of a whole plan; ``max_calls`` is the maximum number of calls by tool."""
    counters = _Counters(max_calls)
    result_condition = f"%if gt([0:{counters.lowest_bit}],0)" if max_steps > 1 else ""
    calls = Calls(toolbox, request_terminals, result_condition)
    field_sets: set[tuple[str, ...]] = set()
    if any(call.is_parametric for _, call in calls.tool_calls):
        field_sets = {_result_fields(tool) for tool, _ in calls.tool_calls} - {()}
    if not field_sets:
        # No call can refer to an earlier step, so the calls need no parameter.
        calls = Calls(toolbox, request_terminals)
    classes = _StepClasses(sorted(field_sets), max_steps, counters.lowest_bit)
    return _all_rules(calls, [*_step_rules(calls, classes, counters), *_reference_rules(classes)])


def _result_fields(tool: ToolSpec) -> tuple[str, ...]:
    return tuple(sorted(set(tool.results)))


def _step_rules(calls: Calls, classes: _StepClasses, counters: _Counters) -> list[str]:
    """Return the rules of steps: ``kN`` is step N and all later steps, ``mN`` is the later steps.

    ``uNxG`` is ``kN`` if step N is a counted call of group G.
    """
    # Calls in a group have the same class and counter, so they change the rule's parameter alike.
    groups: dict[tuple[int, str], list[Expression]] = {}
    for tool, call in calls.tool_calls:
        counted_tool = tool.name if tool.name in counters.range_by_tool else ""
        key = (classes.class_number(_result_fields(tool)), counted_tool)
        groups.setdefault(key, []).append(call)
    rules = {key: calls.rule(f"c{n}", group).text for n, (key, group) in enumerate(groups.items())}
    last = classes.max_steps
    if rules.keys() == {(0, "")}:
        rule = rules[0, ""]
        lines = [f'k{step}:{rule}("\\ns{step + 1} = "k{step + 1})?' for step in range(1, last)]
        return ['start:"s1 = "k1', *lines, f"k{last}:{rule}"]
    lines = ['start:"s1 = "k1::0']
    for step in range(1, last):
        alternatives = []
        for number, ((class_number, tool_name), rule) in enumerate(rules.items()):
            line = f"{rule} m{step}::{classes.parameter_after(step, class_number)}"
            if tool_name:
                # If the rule had only the call, a single symbol, llguidance would remove the rule.
                lines.append(f"u{step}x{number}::_:{line}")
                line = f"u{step}x{number}::incr({counters.range_by_tool[tool_name]})"
                line += counters.condition(tool_name)
            alternatives.append(line)
        lines += [
            f"k{step}::_:{'|'.join(alternatives)}",
            f'm{step}::_:""|"\\ns{step + 1} = "k{step + 1}::_',
        ]
    calls_at_end = [f"{rule}{counters.condition(tool)}" for (_, tool), rule in rules.items()]
    return [*lines, f"k{last}::_:{'|'.join(calls_at_end)}"]


def _reference_rules(classes: _StepClasses) -> list[str]:
    """Return the rules of references: ``xN`` is a step of class N, ``FN`` a field of class N."""
    numbers = range(1, len(classes.field_sets) + 1)
    if not numbers:
        return []
    rules = [f"{REFERENCE_RULE}:{'|'.join(f'x{number}::_ F{number}' for number in numbers)}"]
    for number in numbers:
        earlier = range(1, classes.max_steps)
        steps = [f'"s{step}" {classes.condition(step, number)}' for step in earlier]
        rules += [
            f"x{number}::_:{'|'.join(steps)}",
            f"F{number}:{result_field_regex(classes.field_sets[number - 1])}",
        ]
    return rules


def _all_rules(calls: Calls, rules: list[str]) -> ToolboxRules:
    definitions = [DEFINITIONS[name] for name in DEFINITIONS if name in calls.used_terminals]
    text = "\n".join([*rules, *calls.rules, *calls.terminals(), *definitions])
    return ToolboxRules(text, frozenset(calls.used_terminals))
