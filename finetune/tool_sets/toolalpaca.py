"""Reads ToolAlpaca's evaluation sets (Tang et al. 2023, arXiv:2306.05301) as queries with plans."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.finetune.tool_sets import calls
from casewright.planner import StepRef
from casewright.tools import Parameter, Toolbox, alias

FILES = ("eval_simulated.json", "eval_real.json")
#: A reference to the result of an earlier call: ``${userId from searchUser}``.
_REFERENCE = re.compile(r'"?\$\{(\w+) from (\w+)\}"?')
_MARK = "\0ref\0"  # the start of a text that stands for a reference in parsed JSON
#: A placeholder: ``${start date}``, or ``"{start date}"``.
_PLACEHOLDER = re.compile(r"\$\{[^{}]*\}?|\"\{[^{}\"]*\}\"")
_OTHER_DESCRIPTION = "a function's description has another form"
#: Lines of a function's description, and of the components that descriptions refer to.
_PARAMETERS = re.compile(r"^Parameters: (.*)$", re.MULTILINE)
_STRUCTURE = re.compile(r"^ - Structure: (.*)$", re.MULTILINE)
_COMPONENT = re.compile(r"^(#\w+): (.*)$", re.MULTILINE)
#: The text that declares one parameter: ``Required. Array[integer]. One of: [1, 2]. The size``.
_DECLARATION = re.compile(
    r"(?P<required>Required\. )?(?P<type>\w+)(?:\[(?P<items>\w+)?.*\])?\. ?"
    r"(?:One of: \[(?P<choices>[^\]]*)\]\. ?)?(?P<text>.*)",
    re.DOTALL,
)


class _Api(Record):
    Instructions: list[Any]
    Golden_Answers: list[Any]
    Authentication: dict[str, Any] | list[Any] | None = None
    Function_Description: Any = None


def read_toolalpaca(path: Path) -> Iterator[calls.Conversion]:
    """Yield a conversion of each question in a folder or file; credentials are left out."""
    for file in calls.files_of(path, *FILES):
        for number, record in read_records(file, _Api):
            questions, answers = record.Instructions, record.Golden_Answers
            if len(questions) != len(answers):
                raise InputError(
                    f"{file}, record {number} has {len(questions)} Instructions and {len(answers)} "
                    "Golden_Answers. There must be one answer for each."
                )
            secret_names = frozenset(record.Authentication or ())
            read_toolbox = cache(partial(_api_toolbox, record.Function_Description, secret_names))
            for index, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
                id_ = f"toolalpaca:{file.stem}.{number}.{index}"
                yield partial(_convert, id_, question, answer, read_toolbox, secret_names)


def _convert(
    id_: str,
    question: Any,
    recorded_calls: Any,
    read_toolbox: Callable[[], Toolbox],
    secret_names: frozenset[str],
) -> calls.Query:
    try:
        toolbox = read_toolbox()
    except calls.Unfit as unfit:
        raise calls.Unfit(f"toolbox: {unfit}") from unfit
    if not isinstance(question, str) or not question.strip():
        raise calls.Unfit(calls.NO_QUESTION)
    text = calls.unquoted(question)
    gold_calls = list(_gold_calls(recorded_calls, text, toolbox, secret_names))
    return calls.query_with_plan(id_, text, toolbox, gold_calls, "toolalpaca")


def _gold_calls(
    recorded_calls: Any, question: str, toolbox: Toolbox, secret_names: frozenset[str]
) -> Iterator[calls.GoldCall]:
    if not isinstance(recorded_calls, list) or not recorded_calls:
        raise calls.Unfit("there are no gold calls")
    earlier_tools: list[str] = []
    for call in recorded_calls:
        if not isinstance(call, Mapping) or not isinstance(call.get("Action"), str):
            raise calls.Unfit(calls.OTHER_FORM)
        tool_name = call["Action"]
        if tool_name == "getDetails":
            raise calls.Unfit("the user is asked for details")
        if alias(tool_name) not in toolbox:
            raise calls.Unfit(calls.NO_TOOL)
        arguments = _arguments(call.get("Action_Input"), earlier_tools)
        # Some calls were copied from another question, and are refused.
        if not all(calls.shares_words(value, question) for value in arguments.values()):
            raise calls.Unfit("a text that has no word of the question")
        without_secrets = {k: value for k, value in arguments.items() if k not in secret_names}
        yield calls.GoldCall(tool_name, without_secrets)
        earlier_tools.append(tool_name)


def _arguments(text: Any, earlier_tools: list[str]) -> Mapping[str, Any]:
    if not isinstance(text, str):
        raise calls.Unfit(calls.OTHER_FORM)
    marked = _REFERENCE.sub(lambda match: json.dumps(f"{_MARK}{match[1]} {match[2]}"), text)
    if _PLACEHOLDER.search(marked):
        raise calls.Unfit("a value that the data set leaves open")
    with calls.unfit_on(ValueError, RecursionError, reason="a gold call's arguments are not JSON"):
        arguments = json.loads(marked or "{}")
    if not isinstance(arguments, dict):
        raise calls.Unfit(calls.OTHER_FORM)
    return {key: _resolve(value, earlier_tools) for key, value in arguments.items()}


def _resolve(value: Any, earlier_tools: list[str]) -> Any:
    if not isinstance(value, str) or not value.startswith(_MARK):
        return value
    field, _, tool_name = value[len(_MARK) :].partition(" ")
    if earlier_tools.count(tool_name) != 1:
        raise calls.Unfit("a reference to a call that was not made exactly once before")
    return StepRef(earlier_tools.index(tool_name) + 1, field)


def _api_toolbox(descriptions: Any, secret_names: frozenset[str]) -> Toolbox:
    """Return the toolbox of an API, without the parameters in ``secret_names``."""
    if not isinstance(descriptions, Mapping):
        raise calls.Unfit(_OTHER_DESCRIPTION)
    components = dict(_COMPONENT.findall(str(descriptions.get("components") or "")))
    tools = []
    for name, text in descriptions.items():
        if name == "components":
            continue
        if (match := _PARAMETERS.search(str(text))) is None:
            raise calls.Unfit(_OTHER_DESCRIPTION)
        with calls.unfit_on(ValueError, RecursionError, reason=_OTHER_DESCRIPTION):
            declared = json.loads(match[1])
        parameters = [_parameter(n, str(d)) for n, d in declared.items() if n not in secret_names]
        description, results = str(text)[: match.start()], _result_fields(str(text), components)
        tools.append(calls.make_tool(name, description, parameters, results))
    return calls.make_toolbox(tools)


def _parameter(name: str, text: str) -> Parameter:
    if (match := _DECLARATION.match(text)) is None:
        return calls.make_parameter(name, text, "any", required=text.startswith("Required."))
    return calls.make_parameter(
        name,
        match["text"],
        match["type"].lower(),
        required=match["required"] is not None,
        items=match["items"] or "",
        choices=[item.strip() for item in (match["choices"] or "").split(",") if item.strip()],
    )


def _result_fields(text: str, components: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields of a tool's result, or of its items if the result is a list."""
    match = _STRUCTURE.search(text)
    structure = (match[1] if match else "").removeprefix("Array[")
    if reference := re.match(r"#\w+", structure):
        structure = components.get(reference[0], "")
    if not structure.startswith("Object{"):
        return
    # Without inner objects and lists, the first closing bracket ends the outer object.
    fields_text, removed_count = structure.removeprefix("Object{"), 1
    while removed_count:
        fields_text, removed_count = re.subn(r"[{\[][^{}\[\]]*[}\]]", "", fields_text)
    fields, *_ = re.split(r"(?<=[}\]])", fields_text, maxsplit=1)
    for declared in re.findall(r"([^,}\]]*)[,}\]]", fields):
        if (field := declared.partition(":")[0].strip()).isidentifier():
            yield field
