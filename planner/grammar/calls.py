"""The rules for the calls of a toolbox's tools."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from casewright.planner.grammar.bounds import LIST_ITEMS
from casewright.planner.grammar.forms import LIST_KINDS, forms
from casewright.planner.grammar.terminals import quoted
from casewright.tools import Parameter, Source, Toolbox, ToolSpec

#: The rule of references to earlier steps. It carries the classes of the steps before it as its
#: parameter, as does every rule with a reference in it; llguidance refuses others that do.
REFERENCES = "r::_"
#: The condition that some earlier step has a result.
SOME_RESULT = "%if gt(_,0)"


@dataclass(frozen=True, slots=True)
class Expression:
    """What stands on the right of a rule.

    Attributes:
        text: In Lark.
        parametric: Whether it refers to earlier steps.
        needs_step: Whether nothing can be written where no earlier step has a result.
    """

    text: str
    parametric: bool = False
    needs_step: bool = False

    @property
    def alternative(self) -> str:
        """The text, with its condition."""
        # References alone have no alternative there; what is written before them would be lost.
        led = self.needs_step and self.text != REFERENCES
        return f"{self.text} {SOME_RESULT}" if led else self.text


class Calls:
    """The calls that can be written in a request, and the rules and terminals that they need.

    Args:
        toolbox: The request's tools.
        supplied: The terminals that the request has something for.
        chained: Whether references to earlier steps are written by the rule ``REFERENCES``; a
            terminal among the supplied ones may do it otherwise.

    Attributes:
        tools: The tools that can be called, each with its call. A tool with a required parameter
            that nothing can be given to is not among them.
        rules: Definitions of rules and terminals.
        used: The terminals that they use.
    """

    def __init__(self, toolbox: Toolbox, supplied: Set[str], *, chained: bool) -> None:
        self._supplied = supplied
        self._chained = chained
        self._terminals: dict[tuple[str, ...], str] = {}
        self._values: dict[tuple[object, ...], Expression | None] = {}
        self.rules: list[str] = []
        self.used: set[str] = set()
        calls = ((tool, self._call(tool)) for tool in toolbox)
        self.tools: list[tuple[ToolSpec, Expression]] = [
            (tool, call) for tool, call in calls if call is not None
        ]

    def rule(self, name: str, alternatives: list[Expression]) -> Expression:
        """Define a rule, and return what refers to it."""
        parametric = any(one.parametric for one in alternatives)
        head = f"{name}::_" if parametric else name
        self.rules.append(f"{head}:{'|'.join(one.alternative for one in alternatives)}")
        needs_step = all(one.needs_step for one in alternatives)
        return Expression(head, parametric, needs_step)

    def _call(self, tool: ToolSpec) -> Expression | None:
        arguments: list[tuple[Parameter, Expression]] = []
        for parameter in tool.parameters:
            value = self._value(parameter)
            if value is not None:
                arguments.append((parameter, value))
            elif parameter.required:
                return None
        if not arguments:
            return Expression(quoted(f"{tool.name}()"))
        required = [i for i, (parameter, _) in enumerate(arguments) if parameter.required]
        if not required:
            return self._optional_call(tool, arguments)
        # A required argument is always there: the optional ones before it end with a comma, those
        # after it start with one.
        anchor = required[0]
        text = quoted(f"{tool.name}(") if anchor else ""
        for parameter, value in arguments[:anchor]:
            text += _left_out(f'{_named(parameter.name, value)}", "', value)
        parameter, value = arguments[anchor]
        text += _named(parameter.name if anchor else f"{tool.name}({parameter.name}", value)
        for parameter, value in arguments[anchor + 1 :]:
            named = _named(f", {parameter.name}", value)
            text += named if parameter.required else _left_out(named, value)
        return Expression(
            f'{text}")"',
            any(value.parametric for _, value in arguments),
            any(value.needs_step for parameter, value in arguments if parameter.required),
        )

    def _optional_call(
        self, tool: ToolSpec, arguments: list[tuple[Parameter, Expression]]
    ) -> Expression:
        # Whichever argument is the first, those after it start with a comma.
        alternatives: list[Expression] = []
        rest = Expression("")
        for parameter, value in reversed(arguments):
            parametric = value.parametric or rest.parametric
            # A space before a name: Lark reads ?name and _name as names too.
            first = f"{_named(parameter.name, value)} {rest.text}"
            alternatives.append(Expression(first, parametric, value.needs_step))
            if len(alternatives) < len(arguments):
                later = f"{_left_out(_named(f', {parameter.name}', value), value)} {rest.text}"
                rest = self.rule(f"o{len(self.rules)}", [Expression(later, parametric)])
        given = self.rule(f"o{len(self.rules)}", [*alternatives, Expression('""')])
        return Expression(f'{quoted(f"{tool.name}(")}{given.text}")"', given.parametric)

    def _value(self, parameter: Parameter) -> Expression | None:
        whole = forms(parameter, self._supplied, whole=True)
        listed = parameter.kind in LIST_KINDS
        items = forms(parameter, self._supplied, whole=False) if listed else ()
        step = self._chained and Source.STEP in parameter.sources
        key = (whole, items, step, listed)
        if key not in self._values:
            self._values[key] = self._new_value(whole, items, step=step, listed=listed)
        return self._values[key]

    def _new_value(
        self, whole: tuple[str, ...], items: tuple[str, ...], *, step: bool, listed: bool
    ) -> Expression | None:
        values = self._either(whole, step=step)
        if listed and (item := self._joined("e", self._either(items, step=step))):
            more = f'{item.text}(", "{item.text}){{0,{LIST_ITEMS - 1}}}'
            values.append(Expression(f'"["{more}"]"', item.parametric, item.needs_step))
        return self._joined("v", values)

    def _either(self, alternatives: tuple[str, ...], *, step: bool) -> list[Expression]:
        found = []
        if alternatives:
            self.used.update(alternatives)
            name = self._terminals.setdefault(alternatives, f"V{len(self._terminals)}")
            found.append(Expression(name))
        if step:
            found.append(Expression(REFERENCES, parametric=True, needs_step=True))
        return found

    def _joined(self, letter: str, alternatives: list[Expression]) -> Expression | None:
        if len(alternatives) < 2:
            return alternatives[0] if alternatives else None
        # No rule is named i…: after a text in quotes Lark would take that letter for its flag.
        return self.rule(f"{letter}{len(self.rules)}", alternatives)

    def terminals(self) -> list[str]:
        """Return the definitions of the values' terminals."""
        return [f"{name}:{'|'.join(either)}" for either, name in self._terminals.items()]


def _named(name: str, value: Expression) -> str:
    return quoted(f"{name}=") + value.text


def _left_out(argument: str, value: Expression) -> str:
    """Return an argument that may be left out, and must be where it cannot be given."""
    return f'({argument} {SOME_RESULT}|"")' if value.needs_step else f"({argument})?"
