"""ToolAlpaca's descriptions of functions as a toolbox.

A description is text: what it does, ``Parameters: {JSON}`` whose values read ``Required. string.
One of: [a, b]. What it is.``, and ``Structure: Object{field, field: Array[…]}``; structures with a
name are listed under ``components``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from casewright.finetune.instructions.readers.functions import make_toolbox, parameter, tool
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.tools import Parameter, Toolbox

_PARAMETERS = re.compile(r"^Parameters: (.*)$", re.MULTILINE)
_STRUCTURE = re.compile(r"^ - Structure: (.*)$", re.MULTILINE)
_NAMED = re.compile(r"^(#\w+): (.*)$", re.MULTILINE)
_DECLARED = re.compile(
    r"(?P<required>Required\. )?(?P<type>\w+)(?P<items>\[.*\])?\. ?"
    r"(?:One of: \[(?P<choices>[^\]]*)\]\. ?)?(?P<said>.*)",
    re.DOTALL,
)
_ITEMS = re.compile(r"\[(\w+)")


def api_toolbox(described: Any, secrets: frozenset[str]) -> Toolbox:
    """Return the toolbox of an API.

    Args:
        described: Function name to description.
        secrets: Names of parameters that are credentials: no plan writes them.

    Raises:
        Unfit: A description has another form, or a name that no plan can write.
    """
    if not isinstance(described, Mapping):
        raise Unfit("a function's description has another form")
    named = dict(_NAMED.findall(str(described.get("components") or "")))
    tools = []
    for name, text in described.items():
        if name != "components":
            found = _PARAMETERS.search(str(text))
            if found is None:
                raise Unfit("a function's description has another form")
            said = str(text)[: found.start()]
            results = list(_fields(str(text), named))
            tools.append(tool(name, said, _parameters(found[1], secrets), results))
    return make_toolbox(tools)


def _parameters(text: str, secrets: frozenset[str]) -> list[Parameter]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        raise Unfit("a function's description has another form") from None
    return [_parameter(name, str(said)) for name, said in declared.items() if name not in secrets]


def _parameter(name: str, text: str) -> Parameter:
    found = _DECLARED.match(text)
    if found is None:
        return parameter(name, text, "any", required=text.startswith("Required."))
    items = _ITEMS.match(found["items"] or "")
    return parameter(
        name,
        found["said"],
        found["type"].lower(),
        required=found["required"] is not None,
        items=items[1] if items else "",
        choices=[one.strip() for one in (found["choices"] or "").split(",") if one.strip()],
    )


def _fields(text: str, named: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that a result has; of a list, those of its items."""
    found = _STRUCTURE.search(text)
    structure = found[1] if found else ""
    structure = structure.removeprefix("Array[")
    if reference := re.match(r"#\w+", structure):
        structure = named.get(reference[0], "")
    if not structure.startswith("Object{"):
        return
    depth, name = 0, ""
    for char in structure.removeprefix("Object{"):
        depth += (char in "{[") - (char in "}]")
        if depth < 0 or (depth == 0 and char == ","):
            if (field := name.partition(":")[0].strip()).isidentifier():
                yield field
            name = ""
            if depth < 0:
                return
        else:
            name += char
