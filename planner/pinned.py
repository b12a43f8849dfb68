"""Pinned plans: a question and its plan with named parameters, in a TOML file under review."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
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

FORMAT = 1
#: Names of pinned plans, which are names of files too; most bytes of a file, and most parameters.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
MOST_BYTES, MOST_PARAMETERS = 64 * 1024, 32
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HEAD = """\
# A pinned plan. casewright plans run {name} --with PARAMETER=VALUE runs it, whatever a planner
# would write today, as long as its tools are declared as they are below.
"""
Values = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class PinnedPlan:
    """A plan that is kept under a name.

    Attributes:
        question: The question, with ``{parameter}`` in the places of parameters.
        plan: The plan, with the same in its texts; a text that is nothing else is of the
            parameter's type.
        parameters: The values of the parameters at pinning, which are also their defaults.
        tools: The declaration of each of its tools, by name.
    """

    name: str
    question: str
    plan: Plan
    parameters: Values
    tools: Mapping[str, Mapping[str, str]]

    @property
    def context(self) -> list[str]:
        """The fields of the context that the plan needs."""
        return context_fields(self.plan)

    def to_json(self) -> dict[str, Any]:
        """Return name, question, plan, parameters, tools and fields of the context, JSON-plain."""
        return {
            "name": self.name,
            "question": self.question,
            "plan": str(self.plan),
            "parameters": dict(self.parameters),
            "context": self.context,
            "tools": list(self.tools),
        }

    def to_toml(self) -> str:
        """Return the text of the file."""
        lines = [_HEAD.format(name=self.name), f"format = {FORMAT}"]
        lines += [f"question = {_toml(self.question)}", "plan = ["]
        steps = str(self.plan).split("\n")
        lines += [*(f"  {_step_toml(step)}," for step in steps), "]", "", "[parameters]"]
        lines += [f"{name} = {_toml(value)}" for name, value in self.parameters.items()]
        for tool, declared in self.tools.items():
            lines += ["", f"[tools.{tool}]"]
            lines += [f"{part} = {_toml(text)}" for part, text in declared.items()]
        return "\n".join(lines) + "\n"

    def save(self, folder: Path, *, replace: bool = False) -> Path:
        """Write the file into a folder, which is made if it is missing; return the file.

        Raises:
            InputError: There is one of this name and ``replace`` is false, or it cannot be written.
        """
        file = folder / f"{self.name}.toml"
        if file.exists() and not replace:
            raise InputError(f"{file} exists. Choose another name, or replace it.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, self.to_toml())
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from error
        return file

    def differences(self, toolbox: Toolbox) -> list[str]:
        """Return a sentence for each difference of its tools from those of a toolbox."""
        changes = []
        for name, pinned in self.tools.items():
            if name not in toolbox:
                changes.append(f"{name} is gone")
                continue
            present = _declared(toolbox[name])
            changes += [
                f"{name}: its {part} was {pinned.get(part, '')!r}, and is {present[part]!r}"
                for part in ("signature", "description")
                if pinned.get(part) != present[part]
            ]
            if not any(change.startswith(f"{name}:") for change in changes) and pinned != present:
                changes.append(f"{name}: types of its parameters, or its need of approval, changed")
        return changes

    def filled(self, toolbox: Toolbox, values: Mapping[str, Any]) -> tuple[str, FixedPlanner]:
        """Return the question with values of parameters, and a planner that writes its plan.

        Args:
            toolbox: The tools that it is to run with.
            values: Parameter to value, of the type of its default.

        Raises:
            InputError: The tools are declared otherwise than at pinning, there is no such
                parameter, or its value is of another type.
        """
        if changes := self.differences(toolbox):
            shown = cleaned("; ".join(changes), 2000)
            raise InputError(
                f"The tools of the pinned plan {self.name!r} have changed: {shown}. Pin it anew, "
                "or restore them."
            )
        for name, value in values.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise InputError(f"There is no parameter {name!r:.80}. There are: {known}.")
            wanted = type(self.parameters[name])
            if type(value) is not wanted and not (wanted is float and type(value) is int):
                raise InputError(
                    f"The parameter {name} is {value!r:.80}; give a {_KINDS[wanted]}, as "
                    f"{self.parameters[name]!r:.80} is."
                )
        return self._filled({**self.parameters, **values})

    def _filled(self, values: Values) -> tuple[str, FixedPlanner]:
        def text(template: str) -> str:
            # In one go: braces in a value stand for themselves.
            return re.sub(
                r"\{(\w+)\}",
                lambda match: _text(values[match[1]]) if match[1] in values else match[0],
                template,
            )

        def change(value: Scalar) -> Scalar:
            if not isinstance(value, Literal) or not isinstance(value.value, str):
                return value
            whole = re.fullmatch(r"\{(\w+)\}", value.value)
            return Literal(values[whole[1]] if whole and whole[1] in values else text(value.value))

        plan = Plan(tuple(step.mapped(change) for step in self.plan.steps))
        return text(self.question), FixedPlanner(plan, f"pinned:{self.name}")


_KINDS = {str: "text", int: "whole number", float: "number", bool: "boolean"}


def pin_plan(
    name: str, question: str, plan: Plan, toolbox: Toolbox, parameters: Values | None = None
) -> PinnedPlan:
    """Return a plan of a question as a pinned plan.

    Args:
        name: Letters, digits, hyphens and underscores.
        question: The question; a template follows from the parameters.
        plan: The plan, with values.
        toolbox: The tools that it runs with.
        parameters: Parameter to the value that it has in question and plan: a text in any case,
            there as whole words; a number or a boolean as an argument.

    Raises:
        InputError: The name is none, the plan calls another tool, or a parameter's value is neither
            in the question nor in the plan.
    """
    parameters = dict(parameters or {})
    _check_names(name, parameters)
    if unknown := sorted({*plan.tools} - {*toolbox.names}):
        raise InputError(f"There is no tool {', '.join(unknown)}. Pin a plan of these tools.")

    template, steps = question, plan.steps
    # Longer values first: a value may hold another one.
    for parameter, value in sorted(parameters.items(), key=lambda item: -len(_text(item[1]))):
        before = template, steps
        template, steps = _with_parameter(template, steps, parameter, value)
        if before == (template, steps):
            raise InputError(
                f"The parameter {parameter} is {value!r:.80}, which is neither in the question nor "
                "in the plan. Give a value that is there."
            )
    tools = {tool: _declared(toolbox[tool]) for tool in dict.fromkeys(plan.tools)}
    pinned = PinnedPlan(name, template, Plan(steps), parameters, tools)
    again, planner = pinned.filled(toolbox, {})
    if (again.casefold(), str(planner.fixed).casefold()) != (
        question.casefold(),
        str(plan).casefold(),
    ):
        raise InputError(
            "The parameters' values cannot be told from other texts of the question or the plan. "
            "Give longer values, a number in quotes if it is a text there, or fewer parameters."
        )
    return pinned


def read_pinned(folder: Path, name: str) -> PinnedPlan:
    """Read the pinned plan of a name from a folder.

    Raises:
        InputError: There is none, or its file is damaged; the message names what is wrong.
    """
    file = folder / f"{name}.toml"
    if not NAME.fullmatch(name) or not file.is_file():
        known = ", ".join(pinned_names(folder)) or "none"
        raise InputError(f"There is no pinned plan {name!r:.80} in {folder}. There are: {known}.")
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        return _read(name, tomllib.loads(content.decode("utf-8")))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{file} is no pinned plan: {cleaned(what, 300)}. casewright plans pin writes them."
        ) from error


def pinned_names(folder: Path) -> list[str]:
    """Return the names of the pinned plans of a folder, sorted; none if it is missing."""
    return sorted(file.stem for file in folder.glob("*.toml") if NAME.fullmatch(file.stem))


def _read(name: str, data: Mapping[str, Any]) -> PinnedPlan:
    if type(data["format"]) is not int or data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r:.20}, not {FORMAT}")
    question, parameters, tools = data["question"], data.get("parameters", {}), data["tools"]
    if not isinstance(question, str) or len(question) > MAX_QUESTION_CHARACTERS:
        raise ValueError(f"its question is no text of at most {MAX_QUESTION_CHARACTERS} characters")
    _check_names(name, parameters)
    plan = parse_plan("\n".join(data["plan"]))
    if {*plan.tools} != tools.keys():
        raise ValueError("its tools are not those of its plan, as after an edit of the steps")
    return PinnedPlan(name, question, plan, parameters, {tool: dict(tools[tool]) for tool in tools})


def _check_names(name: str, parameters: Mapping[str, Any]) -> None:
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r:.80} is no name of a plan. Use letters, digits, hyphens and underscores."
        )
    if len(parameters) > MOST_PARAMETERS:
        raise InputError(f"There are more than {MOST_PARAMETERS} parameters. Use fewer.")
    for parameter, value in parameters.items():
        if not _PARAMETER.fullmatch(parameter):
            raise InputError(
                f"{parameter!r:.80} is no name of a parameter. Use letters, digits, underscores."
            )
        if type(value) not in _KINDS:
            raise InputError(f"The parameter {parameter} is no text, number or boolean. Give one.")
        Literal(value)
        if value == "":
            raise InputError(f"The parameter {parameter} is empty. Give its value at pinning.")


def _with_parameter(
    question: str, steps: tuple[Step, ...], name: str, value: str | int | float | bool
) -> tuple[str, tuple[Step, ...]]:
    """Return question and steps with a parameter in the place of its value."""
    words = re.compile(rf"(?<!\w){re.escape(_text(value))}(?!\w)", re.IGNORECASE)
    placeholder = f"{{{name}}}"

    def change(scalar: Scalar) -> Scalar:
        if scalar == Literal(value):
            return Literal(placeholder)
        if isinstance(scalar, Literal) and isinstance(scalar.value, str):
            return Literal(words.sub(placeholder, scalar.value))
        return scalar

    return words.sub(placeholder, question), tuple(step.mapped(change) for step in steps)


def _declared(tool: ToolSpec) -> dict[str, str]:
    """Return what a pinned plan records of a tool."""
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
    # A JSON text is one of TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _step_toml(step: str) -> str:
    # Without escaped quotes, where TOML allows it.
    return _toml(step) if "'" in step or not step.isprintable() else f"'{step}'"
