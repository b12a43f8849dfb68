"""The grammar rules for calls of a toolbox's tools."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from json import dumps

from casewright.planner.grammar.terminals import (
    CONTEXT_TERMINALS,
    INTEGER,
    LITERAL,
    MAX_LIST_ITEMS,
    NUMBER,
    REFERENCE,
    SPAN,
    quoted,
)
from casewright.tools import Parameter, Source, ToolSpec

#: The rule of references to earlier steps. The rule's parameter encodes the result fields of these
#: steps. llguidance requires this parameter in each rule with a reference, and in no other rule.
REFERENCE_RULE = "r::_"


@dataclass(frozen=True, slots=True)
class Expression:
    """Right-hand side of a rule, or a part of it.

    Attributes:
        text: The expression in Lark.
        is_parametric: True if it can contain a reference to an earlier step.
        needs_step: True if it must contain a reference, so that it needs a step with results.
    """

    text: str
    is_parametric: bool = False
    needs_step: bool = False


class Calls:
    """Possible calls in a request, with the rules and terminals that they need.

    Rules are ``oN`` for optional arguments, ``eN`` for items of lists and ``vN`` for values;
    terminals are ``VN``, for alternatives of values or items.

    Args:
        request_terminals: Names of the terminals that the request defines.
        result_condition: Lark condition that an earlier step has results. With a condition,
            calls refer to steps by ``REFERENCE_RULE``. Without a condition, they refer to steps by
            the terminal ``REFERENCE``, if the request defines this terminal.

    Attributes:
        tool_calls: Pairs of a tool and the expression of its calls. A tool is left out if a
            required parameter has no possible argument.
        rules: Definitions of the rules.
        used_terminals: Terminals that the rules use: names, and quoted texts.
    """

    def __init__(
        self, toolbox: Sequence[ToolSpec], request_terminals: Set[str], result_condition: str = ""
    ) -> None:
        self._request_terminals = request_terminals
        self._result_condition = result_condition
        self._terminal_names: dict[tuple[str, ...], str] = {}
        self._cached_values: dict[tuple[object, ...], Expression | None] = {}
        self.rules: list[str] = []
        self.used_terminals: set[str] = set()
        self.tool_calls = [(t, call) for t in toolbox if (call := self._call(t)) is not None]

    def rule(self, name: str, alternatives: list[Expression]) -> Expression:
        """Define a rule and return the expression that refers to it."""
        is_parametric = any(alternative.is_parametric for alternative in alternatives)
        rule_name = f"{name}::_" if is_parametric else name
        self.rules.append(f"{rule_name}:{'|'.join(map(self._alternative, alternatives))}")
        needs_step = all(alternative.needs_step for alternative in alternatives)
        return Expression(rule_name, is_parametric, needs_step)

    def _alternative(self, expression: Expression) -> str:
        # If no step has results, text that needs a reference is a dead end; the condition excludes
        # the text. ``REFERENCE_RULE`` needs no condition: the rules of its steps have conditions.
        is_conditional = expression.needs_step and expression.text != REFERENCE_RULE
        return f"{expression.text} {self._result_condition}" if is_conditional else expression.text

    def _optional(self, argument: str, value: Expression) -> str:
        """Return an optional argument, with the result condition if ``value`` needs a step."""
        return f'({argument} {self._result_condition}|"")' if value.needs_step else f"({argument})?"

    def _call(self, tool: ToolSpec) -> Expression | None:
        """Return a tool's calls as an expression; ``None`` if a required argument is impossible."""
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
            return self._call_without_required(tool, arguments)
        # The first required argument, the anchor, is always present: arguments before it end with a
        # comma, and arguments after it start with a comma.
        anchor = required[0]
        text = quoted(f"{tool.name}(") if anchor > 0 else ""
        for parameter, value in arguments[:anchor]:
            text += self._optional(f'{_argument(parameter.name, value)}", "', value)
        parameter, value = arguments[anchor]
        text += _argument(parameter.name if anchor > 0 else f"{tool.name}({parameter.name}", value)
        for parameter, value in arguments[anchor + 1 :]:
            argument = _argument(f", {parameter.name}", value)
            text += argument if parameter.required else self._optional(argument, value)
        return Expression(
            f'{text}")"',
            any(value.is_parametric for _, value in arguments),
            any(value.needs_step for parameter, value in arguments if parameter.required),
        )

    def _call_without_required(
        self, tool: ToolSpec, arguments: list[tuple[Parameter, Expression]]
    ) -> Expression:
        # Each alternative begins with a different argument; the following ones start with a comma.
        alternatives: list[Expression] = []
        following = Expression("")
        for parameter, value in reversed(arguments):
            is_parametric = value.is_parametric or following.is_parametric
            # Without the space, Lark would read ?name and _name as names.
            remaining = f"{_argument(parameter.name, value)} {following.text}"
            alternatives.append(Expression(remaining, is_parametric, value.needs_step))
            if len(alternatives) < len(arguments):
                argument = self._optional(_argument(f", {parameter.name}", value), value)
                text = f"{argument} {following.text}"
                following = self.rule(f"o{len(self.rules)}", [Expression(text, is_parametric)])
        rule = self.rule(f"o{len(self.rules)}", [*alternatives, Expression('""')])
        return Expression(f'{quoted(f"{tool.name}(")}{rule.text}")"', rule.is_parametric)

    def _value(self, parameter: Parameter) -> Expression | None:
        """Return a parameter's arguments as an expression; ``None`` if no argument is possible."""
        takes_list = parameter.kind in ("array", "any")
        takes_step = bool(self._result_condition) and Source.STEP in parameter.sources
        terminals = self._request_terminals
        scalars = _alternatives(parameter, terminals, in_list=False)
        items = _alternatives(parameter, terminals, in_list=True) if takes_list else ()
        key = (scalars, items, takes_step, takes_list)
        if key not in self._cached_values:
            values = self._expressions(scalars, takes_step=takes_step)
            item_values = self._expressions(items, takes_step=takes_step) if takes_list else []
            if item := self._as_one_rule("e", item_values):
                list_text = f'"["{item.text}(", "{item.text}){{0,{MAX_LIST_ITEMS - 1}}}"]"'
                values.append(Expression(list_text, item.is_parametric, item.needs_step))
            self._cached_values[key] = self._as_one_rule("v", values)
        return self._cached_values[key]

    def _expressions(self, alternatives: tuple[str, ...], *, takes_step: bool) -> list[Expression]:
        """Return a terminal for the alternatives, if any, and a reference if ``takes_step``."""
        expressions = []
        if alternatives:
            self.used_terminals.update(alternatives)
            name = self._terminal_names.setdefault(alternatives, f"V{len(self._terminal_names)}")
            expressions.append(Expression(name))
        if takes_step:
            expressions.append(Expression(REFERENCE_RULE, is_parametric=True, needs_step=True))
        return expressions

    def _as_one_rule(self, prefix: str, alternatives: list[Expression]) -> Expression | None:
        """Return the only alternative, or a new rule of several; ``None`` if there is none."""
        if len(alternatives) < 2:
            return alternatives[0] if alternatives else None
        # The prefix is not i: Lark would read i as a flag of a quoted text before it.
        return self.rule(f"{prefix}{len(self.rules)}", alternatives)

    def terminals(self) -> list[str]:
        """Return the definitions of the arguments' terminals."""
        return [f"{name}:{'|'.join(texts)}" for texts, name in self._terminal_names.items()]


def _argument(name: str, value: Expression) -> str:
    return quoted(f"{name}=") + value.text


def _alternatives(
    parameter: Parameter, request_terminals: Set[str], *, in_list: bool
) -> tuple[str, ...]:
    """Return, in Lark, the alternatives that the static checks admit for an argument.

    ``REFERENCE_RULE`` is not among them. An item of a list need not have the parameter's type.
    """
    sources = parameter.sources
    kind = "any" if in_list else parameter.kind
    alternatives: list[str] = []
    if kind in ("string", "any"):
        alternatives += [
            quoted(dumps(text, ensure_ascii=False))
            for text in parameter.choices
            # A choice with a lone surrogate cannot be encoded and is never written.
            if text == text.encode("utf-8", "ignore").decode()
        ]
        if Source.LITERAL in sources:
            # A literal may be any text, including a span.
            alternatives.append(LITERAL)
        elif Source.SPAN in sources and SPAN in request_terminals:
            alternatives.append(SPAN)
        if Source.QUESTION in sources:
            alternatives.append('"question"')
    context_terminal = CONTEXT_TERMINALS[kind]
    if Source.CONTEXT in sources and context_terminal in request_terminals:
        alternatives.append(context_terminal)
    if Source.STEP in sources and REFERENCE in request_terminals:
        alternatives.append(REFERENCE)
    if Source.NUMBER in sources and kind in ("number", "integer", "any"):
        alternatives.append(INTEGER if kind == "integer" else NUMBER)
    if Source.BOOLEAN in sources and kind in ("boolean", "any"):
        alternatives += ['"true"', '"false"']
    return tuple(alternatives)
