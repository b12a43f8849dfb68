"""The part of the grammar that a toolbox determines, for a whole plan and for one line of it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from casewright.planner.grammar.calls import REFERENCES, Calls, Expression
from casewright.planner.grammar.step_classes import StepClasses
from casewright.planner.grammar.terminals import DEFINITIONS, fields_after_step
from casewright.tools import Toolbox, ToolSpec

#: The rule of one call, in the grammar of one line.
CALL = "c"


@dataclass(frozen=True, slots=True)
class ToolboxPart:
    """The definitions that a toolbox determines, and the request's terminals that they use."""

    text: str
    used: frozenset[str]


def line_part(toolbox: Toolbox, supplied: Set[str]) -> ToolboxPart:
    """Return the rules of one call, named ``CALL``; a terminal holds the references."""
    calls = Calls(toolbox, supplied, chained=False)
    calls.rule(CALL, [call for _, call in calls.tools])
    return _part(calls, [])


def plan_part(toolbox: Toolbox, supplied: Set[str], max_steps: int) -> ToolboxPart:
    """Return the rules of a whole plan, ``start`` among them."""
    calls = Calls(toolbox, supplied, chained=max_steps > 1)
    fields: set[tuple[str, ...]] = set()
    if any(call.parametric for _, call in calls.tools):
        fields = {_fields(tool) for tool, _ in calls.tools} - {()}
    if not fields:
        calls = Calls(toolbox, supplied, chained=False)
    classes = StepClasses(sorted(fields), max_steps)
    return _part(calls, [*_lines(calls, classes), *_references(classes)])


def _fields(tool: ToolSpec) -> tuple[str, ...]:
    return tuple(sorted(set(tool.results)))


def _lines(calls: Calls, classes: StepClasses) -> list[str]:
    by_class: dict[int, list[Expression]] = {}
    for tool, call in calls.tools:
        by_class.setdefault(classes.number(_fields(tool)), []).append(call)
    heads = {number: calls.rule(f"c{number}", some).text for number, some in by_class.items()}
    last = classes.steps
    if not classes.fields:
        (head,) = heads.values()
        lines = [f'k{step}:{head}("\\ns{step + 1} = "k{step + 1})?' for step in range(1, last)]
        return ['start:"s1 = "k1', *lines, f"k{last}:{head}"]
    lines = ['start:"s1 = "k1::0']
    for step in range(1, last):
        # The lines after a step know what its results are.
        either = [f"{head} m{step}::{classes.told(step, n)}" for n, head in heads.items()]
        lines += [
            f"k{step}::_:{'|'.join(either)}",
            f'm{step}::_:""|"\\ns{step + 1} = "k{step + 1}::_',
        ]
    return [*lines, f"k{last}::_:{'|'.join(heads.values())}"]


def _references(classes: StepClasses) -> list[str]:
    numbers = range(1, len(classes.fields) + 1)
    if not numbers:
        return []
    rules = [f"{REFERENCES}:{'|'.join(f'x{number}::_ F{number}' for number in numbers)}"]
    for number in numbers:
        steps = [f'"s{n}" {classes.known(n, number)}' for n in range(1, classes.steps)]
        rules += [
            f"x{number}::_:{'|'.join(steps)}",
            f"F{number}:{fields_after_step(classes.fields[number - 1])}",
        ]
    return rules


def _part(calls: Calls, lines: list[str]) -> ToolboxPart:
    known = [DEFINITIONS[name] for name in DEFINITIONS if name in calls.used]
    text = "\n".join([*lines, *calls.rules, *calls.terminals(), *known])
    return ToolboxPart(text, frozenset(calls.used))
