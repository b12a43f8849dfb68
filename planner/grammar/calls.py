"""The grammar rules for the calls of a toolbox's tools."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from json import dumps

from casewright.planner.grammar.terminals import (
    CONTEXT,
    INTEGER,
    LIST_ITEMS,
    LITERAL,
    NUMBER,
    REFERENCE,
    SPAN,
    quoted,
)
from casewright.tools import Parameter, Source, ToolSpec

#: The rule of references to earlier steps. Its parameter has the classes of the earlier steps.
#: llguidance requires this parameter in every rule with a reference, and in no other rule.
REFERENCES = "r::_"
_LIST_KINDS = ("array", "any")


@dataclass(frozen=True, slots=True)
class Expression:
    """Right-hand side of a rule.

    Attributes:
        text: The text in Lark.
        parametric: True if it refers to earlier steps.
        needs_step: True if it matches only after an earlier step with results.
    """

    text: str
    parametric: bool = False
    needs_step: bool = False


class Calls:
    """Possible calls in a request, with the rules and terminals that they need.

    Args:
        supplied: Terminals that the request defines.
        chained: Use the rule ``REFERENCES`` for references to earlier steps; otherwise one of the
            supplied terminals may match them.
        some_result: The condition that an earlier step has results.

    Attributes:
        tools: The tools that can be called, each with its call. A tool is left out if a required
            parameter has no possible argument.
        rules: Definitions of the rules.
        used: Terminals that the rules use.
    """

    def __init__(
        self,
        toolbox: Sequence[ToolSpec],
        supplied: Set[str],
        *,
        chained: bool,
        some_result: str = "%if gt(_,0)",
    ) -> None:
        self._supplied = supplied
        self._chained = chained
        self._some_result = some_result
        self._terminals: dict[tuple[str, ...], str] = {}
        self._values: dict[tuple[object, ...], Expression | None] = {}
        self.rules: list[str] = []
        self.used: set[str] = set()
        calls = ((tool, self._call(tool)) for tool in toolbox)
        self.tools: list[tuple[ToolSpec, Expression]] = [
            (tool, call) for tool, call in calls if call is not None
        ]

    def rule(self, name: str, alternatives: list[Expression]) -> Expression:
        """Define a rule and return the text that refers to it."""
        parametric = any(option.parametric for option in alternatives)
        head = f"{name}::_" if parametric else name
        self.rules.append(f"{head}:{'|'.join(map(self._alternative, alternatives))}")
        needs_step = all(option.needs_step for option in alternatives)
        return Expression(head, parametric, needs_step)

    def _alternative(self, option: Expression) -> str:
        # References alone need no condition; text before them does, to avoid a dead end.
        conditional = option.needs_step and option.text != REFERENCES
        return f"{option.text} {self._some_result}" if conditional else option.text

    def _optional(self, argument: str, value: Expression) -> str:
        """Return an optional argument; if it has no possible value, it must be left out."""
        return f'({argument} {self._some_result}|"")' if value.needs_step else f"({argument})?"

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
        # The first required argument is always present: optional ones before it end with a comma,
        # later ones start with one.
        anchor = required[0]
        text = quoted(f"{tool.name}(") if anchor else ""
        for parameter, value in arguments[:anchor]:
            text += self._optional(f'{_named(parameter.name, value)}", "', value)
        parameter, value = arguments[anchor]
        text += _named(parameter.name if anchor else f"{tool.name}({parameter.name}", value)
        for parameter, value in arguments[anchor + 1 :]:
            argument = _named(f", {parameter.name}", value)
            text += argument if parameter.required else self._optional(argument, value)
        return Expression(
            f'{text}")"',
            any(value.parametric for _, value in arguments),
            any(value.needs_step for parameter, value in arguments if parameter.required),
        )

    def _optional_call(
        self, tool: ToolSpec, arguments: list[tuple[Parameter, Expression]]
    ) -> Expression:
        # Any argument may be the first; later ones start with a comma.
        alternatives: list[Expression] = []
        rest = Expression("")
        for parameter, value in reversed(arguments):
            parametric = value.parametric or rest.parametric
            # A space before a name: Lark reads ?name and _name as names too.
            first = f"{_named(parameter.name, value)} {rest.text}"
            alternatives.append(Expression(first, parametric, value.needs_step))
            if len(alternatives) < len(arguments):
                argument = self._optional(_named(f", {parameter.name}", value), value)
                later = f"{argument} {rest.text}"
                rest = self.rule(f"o{len(self.rules)}", [Expression(later, parametric)])
        rule = self.rule(f"o{len(self.rules)}", [*alternatives, Expression('""')])
        return Expression(f'{quoted(f"{tool.name}(")}{rule.text}")"', rule.parametric)

    def _value(self, parameter: Parameter) -> Expression | None:
        whole = _terminals(parameter, self._supplied, whole=True)
        listed = parameter.kind in _LIST_KINDS
        items = _terminals(parameter, self._supplied, whole=False) if listed else ()
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
        options = []
        if alternatives:
            self.used.update(alternatives)
            name = self._terminals.setdefault(alternatives, f"V{len(self._terminals)}")
            options.append(Expression(name))
        if step:
            options.append(Expression(REFERENCES, parametric=True, needs_step=True))
        return options

    def _joined(self, letter: str, alternatives: list[Expression]) -> Expression | None:
        if len(alternatives) < 2:
            return alternatives[0] if alternatives else None
        # No rule's name starts with i: after a quoted text Lark would read it as a flag.
        return self.rule(f"{letter}{len(self.rules)}", alternatives)

    def terminals(self) -> list[str]:
        """Return the definitions of the values' terminals."""
        return [f"{name}:{'|'.join(either)}" for either, name in self._terminals.items()]


def _named(name: str, value: Expression) -> str:
    return quoted(f"{name}=") + value.text


def _terminals(parameter: Parameter, supplied: Set[str], *, whole: bool) -> tuple[str, ...]:
    """Return the alternatives of an argument that the static checks admit, except references.

    A whole argument must have the parameter's type; an item of a list need not.
    """
    sources = parameter.sources
    options: list[str] = []
    if not whole or parameter.kind in ("string", "any"):
        # A lone surrogate cannot be encoded and is never written.
        texts = [
            text for text in parameter.choices if text == text.encode("utf-8", "ignore").decode()
        ]
        options += [quoted(dumps(text, ensure_ascii=False)) for text in texts]
        if Source.LITERAL in sources:
            # A literal may be any text, including a span.
            options.append(LITERAL)
        elif Source.SPAN in sources and SPAN in supplied:
            options.append(SPAN)
        if Source.QUESTION in sources:
            options.append('"question"')
    fields = CONTEXT[parameter.kind if whole else "any"]
    if Source.CONTEXT in sources and fields in supplied:
        options.append(fields)
    if Source.STEP in sources and REFERENCE in supplied:
        options.append(REFERENCE)
    if Source.NUMBER in sources and (not whole or parameter.kind in ("number", "integer", "any")):
        options.append(INTEGER if whole and parameter.kind == "integer" else NUMBER)
    if Source.BOOLEAN in sources and (not whole or parameter.kind in ("boolean", "any")):
        options += ['"true"', '"false"']
    return tuple(options)
