"""Parses the plan language in linear time; a text that is not a plan raises ``PlanError``."""

from __future__ import annotations

import re
from functools import lru_cache
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from casewright.errors import PlanError
from casewright.planner.plan import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Scalar,
    Step,
    StepRef,
    Value,
)

_SPACE = re.compile(r"[ \t]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])")
_REFERENCE = re.compile(r"s([1-9][0-9]{0,5})(?:\[(0|[1-9][0-9]{0,5})\])?\.([A-Za-z_][A-Za-z0-9_]*)")
_CONTEXT = re.compile(r"context\.([A-Za-z_][A-Za-z0-9_]*)")
_KEYWORD = re.compile(r"(?:question|true|false)(?![A-Za-z0-9_.])")
#: Maximum number of characters of a plan; a dozen steps have fewer, and longer texts parse slowly.
MAX_PLAN_CHARACTERS = 200_000
#: Maximum number of characters of a number; a longer number is useless, and slow to convert.
MAX_NUMBER_CHARACTERS = 40
_STEP_FORM = "Write each step as sN = tool(parameter=value, ...), one a line."


@lru_cache(maxsize=64)
def parse_plan(text: str) -> Plan:
    """Parse a plan; recent plans are cached, since each node of the graph parses the plan again.

    Blank lines and spaces around tokens are allowed; steps are numbered from 1 without gaps. Raise
    ``PlanError``, with the step, the rule and the correction, if the text is not a plan.
    """
    if len(text) > MAX_PLAN_CHARACTERS:
        raise PlanError(
            f"The plan has {len(text):,} characters; at most {MAX_PLAN_CHARACTERS:,} are read.",
            "Write fewer steps, or shorter texts.",
        )
    lines = filter(None, (line.strip(" \t\r") for line in text.split("\n")))
    steps = tuple(_LineParser(line, number).step() for number, line in enumerate(lines, 1))
    if not steps:
        raise PlanError("The plan has no step.", "Write at least s1 = no_evidence().")
    return Plan(steps)


class _LineParser:
    """Parser of one line; ``position`` is the index of the next token's first character."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.position = 0
        self.step_name = f"s{number}"

    def step(self) -> Step:
        name = self._take(_NAME, "a step starts with its name", _STEP_FORM)
        if name != self.step_name:
            self._fail(
                f"The step is called {name[:20]}; steps count from s1 without gaps.",
                f"Call it {self.step_name}.",
            )
        self._expect("=")
        tool = self._take(_NAME, "the name of a tool is missing", _STEP_FORM)
        self._expect("(")
        arguments: dict[str, Value] = {}
        while not self._accept(")"):
            if arguments:
                self._expect(",")
            parameter = self._take(_NAME, "the name of a parameter is missing", _STEP_FORM)
            self._expect("=")
            if parameter in arguments:
                self._fail(f"{parameter[:60]} is given twice.", "Give each argument once.")
            arguments[parameter] = self._value()
        if self.position < len(self.text):
            self._fail(f"Something follows the step: {self._next_text()}.", "Start a new line.")
        return Step(tool, tuple(arguments.items()))

    def _value(self) -> Value:
        if not self._accept("["):
            return self._scalar()
        items: list[Scalar] = []
        while not self._accept("]"):
            if items:
                self._expect(",")
            items.append(self._scalar())
        return ListValue(tuple(items))

    def _scalar(self) -> Scalar:
        text, position = self.text, self.position
        try:
            if text.startswith('"', position):
                is_strict = True  # Control characters must be escaped.
                value, self.position = scanstring(text, position + 1, is_strict)
                self._skip_space()
                return Literal(value)
            if match := self._match(_KEYWORD):
                return QuestionRef() if match[0] == "question" else Literal(match[0] == "true")
            if match := self._match(_REFERENCE):
                return StepRef(int(match[1]), match[3], int(match[2] or 0))
            if match := self._match(_CONTEXT):
                return ContextRef(match[1])
            if (match := self._match(_NUMBER)) and len(match[0]) <= MAX_NUMBER_CHARACTERS:
                return Literal(float(match[0]) if match[1] or match[2] else int(match[0]))
        except JSONDecodeError as error:
            self._fail(
                f"A text is not a JSON string: {error.msg}.",
                'Close it with ", put \\ before " and \\ in it, with \\u for a control character.',
            )
        except PlanError as error:  # Raised by ``Literal``, without the step's name.
            self._fail(error.rule, error.mend)
        self.position = position
        self._fail(
            f"{self._next_text()} is not a value.",
            'A value is "text", a number, true, false, question, context.FIELD, sK.FIELD, '
            "sK[i].FIELD or a flat list of these.",
        )

    def _take(self, pattern: re.Pattern[str], problem: str, correction: str) -> str:
        """Return the next token, or raise ``PlanError`` if it does not match."""
        match = self._match(pattern)
        if match is None:
            self._fail(f"At {self._next_text()}: {problem}.", correction)
        return match[0]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            self._skip_space()
        return match

    def _accept(self, char: str) -> bool:
        if not self.text.startswith(char, self.position):
            return False
        self.position += 1
        self._skip_space()
        return True

    def _expect(self, char: str) -> None:
        if not self._accept(char):
            self._fail(f"{char} is missing at {self._next_text()}.", _STEP_FORM)

    def _skip_space(self) -> None:
        space = _SPACE.match(self.text, self.position)
        assert space is not None
        self.position = space.end()

    def _next_text(self) -> str:
        characters = self.text[self.position : self.position + 30]
        return repr(characters) if characters else "the end of the line"

    def _fail(self, rule: str, correction: str) -> NoReturn:
        raise PlanError(rule, correction, self.step_name)
