"""Pinned plans: a question and its plan with named parameters, in a TOML file for review."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, cleaned
from casewright.planner.fixed import FixedPlanner
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Literal, Plan, Scalar, Step, context_fields
from casewright.planner.request import MAX_QUESTION_CHARACTERS
from casewright.stores.whole_file import write_whole
from casewright.tools import Toolbox, ToolSpec

#: Version of the file format.
FORMAT = 1
#: Pattern of a pinned plan's name, which is its file's name without ``.toml``.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: Maximum number of bytes of a file, and maximum number of parameters.
MAX_BYTES, MAX_PARAMETERS = 64 * 1024, 32
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: The comment at the beginning of a file.
_HEADER = """\
# A pinned plan: casewright plans run {name} --with PARAMETER=VALUE runs it without a planner.
# It is refused once a tool's declaration differs from the one below.
"""
#: Parameters' values, by name.
Values = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class PinnedPlan:
    """Named plan with parameters.

    Attributes:
        question: The question, with a placeholder such as ``{town}`` for each parameter's value.
        plan: The plan, with placeholders in its texts. If a placeholder is the whole argument, the
            value that replaces it need not be a text.
        parameters: Default values of the parameters: their values when the plan was pinned.
        tools: Signature, description and fingerprint of each tool that the plan calls, by name.
    """

    name: str
    question: str
    plan: Plan
    parameters: Values
    tools: Mapping[str, Mapping[str, str]]

    @property
    def context(self) -> list[str]:
        """Names of the context fields that the plan needs."""
        return context_fields(self.plan)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON, with the names of the tools, but without their descriptions."""
        return {
            "name": self.name,
            "question": self.question,
            "plan": str(self.plan),
            "parameters": dict(self.parameters),
            "context": self.context,
            "tools": list(self.tools),
        }

    def to_toml(self) -> str:
        """Return the text of the plan's file."""
        lines = [_HEADER.format(name=self.name), f"format = {FORMAT}"]
        lines += [f"question = {_toml(self.question)}", "plan = ["]
        steps = str(self.plan).split("\n")
        lines += [*(f"  {_step_toml(step)}," for step in steps), "]", "", "[parameters]"]
        lines += [f"{name} = {_toml(value)}" for name, value in self.parameters.items()]
        for tool, declaration in self.tools.items():
            lines += ["", f"[tools.{tool}]"]
            lines += [f"{field} = {_toml(text)}" for field, text in declaration.items()]
        return "\n".join(lines) + "\n"

    def save(self, folder: Path, *, replace: bool = False, most: int | None = None) -> Path:
        """Write the plan's file to a folder, which is created if missing; return the file's path.

        Raise ``InputError`` if the file exists and ``replace`` is false, if the folder already has
        ``most`` plans, or if the file would be too large or cannot be written.
        """
        file, text = folder / f"{self.name}.toml", self.to_toml()
        if len(text.encode()) > MAX_BYTES:
            raise InputError(
                f"The pinned plan {self.name!r} has more than {MAX_BYTES:,} bytes. Shorten it."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _folder_lock(folder):
                if not file.exists():
                    if most is not None and len(pinned_names(folder)) >= most:
                        raise InputError(f"{folder} has {most} plans. Move some of them away.")
                elif not replace:
                    raise InputError(f"{file} exists. Choose another name, or replace it.")
                write_whole(file, text)
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from error
        return file

    def differences(self, toolbox: Toolbox) -> list[str]:
        """Return clauses that say how a toolbox's tools differ from the pinned declarations."""
        changes = []
        for name, declaration in self.tools.items():
            if name not in toolbox:
                changes.append(f"{name} is gone")
                continue
            current = _declaration(toolbox[name])
            tool_changes = [
                f"{name}: its {field} was {declaration.get(field, '')!r}, and is {current[field]!r}"
                for field in ("signature", "description")
                if declaration.get(field) != current[field]
            ]
            if declaration != current and not tool_changes:
                tool_changes = [
                    f"{name}: the types of its parameters, or its need for approval, changed"
                ]
            changes += tool_changes
        return changes

    def filled(self, toolbox: Toolbox, values: Mapping[str, Any]) -> tuple[str, FixedPlanner]:
        """Return the question, and a planner of the plan, with values in place of placeholders.

        A parameter that ``values`` lacks has its default. Raise ``InputError`` if a tool of the
        plan has changed, a parameter is unknown, or a value has another type than the default.
        """
        if changes := self.differences(toolbox):
            shown = cleaned("; ".join(changes), 2000)
            raise InputError(
                f"The tools of the pinned plan {self.name!r} have changed: {shown}. Pin it again, "
                "or restore them."
            )
        for name, value in values.items():
            if name not in self.parameters:
                names = ", ".join(self.parameters) or "none"
                raise InputError(f"There is no parameter {name!r:.80}. There are: {names}.")
            expected = type(self.parameters[name])
            if type(value) is not expected and not (expected is float and type(value) is int):
                raise InputError(
                    f"The parameter {name} is {value!r:.80}; give a {_TYPE_NAMES[expected]}, as "
                    f"{self.parameters[name]!r:.80} is."
                )
        return self._with_values({**self.parameters, **values})

    def _with_values(self, values: Values) -> tuple[str, FixedPlanner]:
        def value_text(match: re.Match[str]) -> str:
            return _text(values[match[1]]) if match[1] in values else match[0]

        def with_values(scalar: Scalar) -> Scalar:
            if not isinstance(scalar, Literal) or not isinstance(scalar.value, str):
                return scalar
            placeholder = _PLACEHOLDER.fullmatch(scalar.value)
            if placeholder and placeholder[1] in values:
                return Literal(values[placeholder[1]])
            # One pass replaces all placeholders, so that braces in a value stay as they are.
            return Literal(_PLACEHOLDER.sub(value_text, scalar.value))

        plan = Plan(tuple(step.mapped(with_values) for step in self.plan.steps))
        question = _PLACEHOLDER.sub(value_text, self.question)
        return question, FixedPlanner(plan, f"pinned:{self.name}")


_TYPE_NAMES = {str: "text", int: "whole number", float: "number", bool: "boolean"}


def pin_plan(
    name: str, question: str, plan: Plan, toolbox: Toolbox, parameters: Values | None = None
) -> PinnedPlan:
    """Return a question and its plan as a pinned plan.

    Raise ``InputError`` if the name is not valid, the plan calls an unknown tool, or a parameter's
    value is neither in the question nor in the plan.

    Args:
        name: A name of letters, digits, hyphens and underscores.
        parameters: Values in the question and the plan, by parameter; placeholders replace them. A
            value is found as an argument, and as whole words in upper or lower case.
    """
    parameters = dict(parameters or {})
    _check_name_and_parameters(name, parameters)
    if unknown := sorted({*plan.tools} - {*toolbox.names}):
        raise InputError(
            f"There is no tool {', '.join(unknown)}. Pin a plan of the toolbox's own tools."
        )
    question_template, steps = question, plan.steps
    # Longer values are replaced first, since a value may contain a shorter one.
    for parameter, value in sorted(parameters.items(), key=lambda item: -len(_text(item[1]))):
        previous = question_template, steps
        question_template, steps = _with_placeholder(question_template, steps, parameter, value)
        if previous == (question_template, steps):
            raise InputError(
                f"The parameter {parameter} is {value!r:.80}, which is neither in the question nor "
                "in the plan. Give a value that is there."
            )
    tools = {tool: _declaration(toolbox[tool]) for tool in dict.fromkeys(plan.tools)}
    pinned = PinnedPlan(name, question_template, Plan(steps), parameters, tools)
    # With its default values, the pinned plan must equal the given one.
    restored_question, planner = pinned.filled(toolbox, {})
    expected = question.casefold(), str(plan).casefold()
    if (restored_question.casefold(), str(planner.fixed).casefold()) != expected:
        raise InputError(
            "A parameter's value also occurs elsewhere in the question or the plan, and the two "
            "cannot be told apart. Give longer values, fewer parameters, or a number in quotes "
            "if the plan has it as a text."
        )
    return pinned


def read_pinned(folder: Path, name: str) -> PinnedPlan:
    """Read a pinned plan from a folder; raise ``InputError`` if it is missing or damaged."""
    file = folder / f"{name}.toml"
    if not NAME.fullmatch(name) or not file.is_file():
        names = ", ".join(pinned_names(folder)) or "none"
        raise InputError(f"There is no pinned plan {name!r:.80} in {folder}. There are: {names}.")
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"{file} is not a pinned plan: it has more than {MAX_BYTES:,} bytes.")
        return parse_pinned(name, content.decode("utf-8"), str(file))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not a pinned plan: it is not UTF-8 text.") from error


def parse_pinned(name: str, text: str, where: str = "The file") -> PinnedPlan:
    """Return the pinned plan of this name from the text of its file.

    Raise ``InputError``, whose message begins with ``where``, if name or text is not valid.
    """
    try:
        return _from_toml(name, tomllib.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        cause = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{where} is not a pinned plan: {cleaned(cause, 300)}. Run casewright plans pin."
        ) from error


def pinned_names(folder: Path) -> list[str]:
    """Return the sorted names of the pinned plans in a folder, which need not exist."""
    return sorted(file.stem for file in folder.glob("*.toml") if NAME.fullmatch(file.stem))


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other process saves a plan in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _from_toml(name: str, data: Mapping[str, Any]) -> PinnedPlan:
    if type(data["format"]) is not int or data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r:.20}, not {FORMAT}")
    question, parameters, tools = data["question"], data.get("parameters", {}), data["tools"]
    if not isinstance(question, str) or len(question) > MAX_QUESTION_CHARACTERS:
        raise ValueError(f"its question is no text of at most {MAX_QUESTION_CHARACTERS} characters")
    _check_name_and_parameters(name, parameters)
    plan = parse_plan("\n".join(data["plan"]))
    if {*plan.tools} != tools.keys():
        raise ValueError("it declares other tools than the plan calls: it may have been edited")
    return PinnedPlan(name, question, plan, parameters, {tool: dict(tools[tool]) for tool in tools})


def _check_name_and_parameters(name: str, parameters: Mapping[str, Any]) -> None:
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r:.80} is not a name of a plan. Use 1 to 64 letters, digits, hyphens and "
            "underscores, and begin with a letter or digit."
        )
    if len(parameters) > MAX_PARAMETERS:
        raise InputError(f"There are more than {MAX_PARAMETERS} parameters. Use fewer.")
    for parameter, value in parameters.items():
        if not _PARAMETER_NAME.fullmatch(parameter):
            raise InputError(
                f"{parameter!r:.80} is not a parameter's name. Use 1 to 64 letters, digits and "
                "underscores, and do not begin with a digit."
            )
        if type(value) not in _TYPE_NAMES:
            raise InputError(f"The parameter {parameter} is not a text, number or boolean.")
        Literal(value)  # Raises ``PlanError`` for a value that no plan can have.
        if value == "":
            raise InputError(f"The parameter {parameter} is empty. Give its value in the plan.")


def _with_placeholder(
    question: str, steps: tuple[Step, ...], name: str, value: str | int | float | bool
) -> tuple[str, tuple[Step, ...]]:
    """Return question and steps with the parameter's placeholder instead of its value."""
    value_pattern = re.compile(rf"(?<!\w){re.escape(_text(value))}(?!\w)", re.IGNORECASE)
    placeholder = f"{{{name}}}"

    def replaced(scalar: Scalar) -> Scalar:
        if scalar == Literal(value):
            return Literal(placeholder)
        if isinstance(scalar, Literal) and isinstance(scalar.value, str):
            return Literal(value_pattern.sub(placeholder, scalar.value))
        return scalar

    steps = tuple(step.mapped(replaced) for step in steps)
    return value_pattern.sub(placeholder, question), steps


def _declaration(tool: ToolSpec) -> dict[str, str]:
    """Return a tool's texts, and a fingerprint that also covers parameters' types and approval."""
    kinds = [[parameter.name, parameter.kind] for parameter in tool.parameters]
    content = json.dumps([tool.signature(), tool.description, kinds, tool.approval])
    return {
        "signature": tool.signature(),
        "description": tool.description,
        "fingerprint": hashlib.sha256(content.encode()).hexdigest()[:16],
    }


def _text(value: str | int | float | bool) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _toml(value: str | int | float | bool) -> str:
    # A JSON string is a valid TOML string, except for the character DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _step_toml(step: str) -> str:
    # A TOML literal string ('…') is preferred, since it shows double quotes without escapes.
    return _toml(step) if "'" in step or not step.isprintable() else f"'{step}'"
