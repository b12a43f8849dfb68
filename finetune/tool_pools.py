"""Pools of alternative names and descriptions for tools.

TEvo (REAPER, Joshi et al. 2024, section on Tool Evolve) replaces names and descriptions by
alternatives from the pools, so that a planner learns to read a tool's purpose, not its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from casewright.errors import InputError
from casewright.finetune.records import first_problem
from casewright.stores.case import check_text
from casewright.tools import NO_EVIDENCE, Toolbox
from casewright.tools.alias import NAME

#: Words of the plan language.
_RESERVED = re.compile(r"question|context|true|false|s[0-9]+")
#: An underscore or a capital letter inside a name; ordinary words have neither.
_IDENTIFIER_LIKE = re.compile(r"\w_\w|[a-z][A-Z]")


def _valid_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no identifier. Names have letters, digits and underscores, and do not "
            "start with a digit"
        )
    if _RESERVED.fullmatch(name):
        raise ValueError(f"{name!r} means something else in a plan. Choose another name")
    return name


def _valid_description(text: str) -> str:
    if not text.strip() or "\n" in text:
        raise ValueError(f"Description {text!r:.60} is empty or has several lines. Write one line")
    try:
        check_text(text)
    except InputError as error:
        raise ValueError(str(error)) from error
    return text


#: Valid names of tools, parameters or result fields, and valid descriptions.
Names = tuple[Annotated[str, AfterValidator(_valid_name)], ...]
Descriptions = tuple[Annotated[str, AfterValidator(_valid_description)], ...]


class ParameterPool(BaseModel):
    """Alternative names and descriptions of a parameter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    names: Names = ()
    descriptions: Descriptions = ()


class ToolPool(ParameterPool):
    """Alternative names and descriptions of a tool, its parameters and its result fields."""

    parameters: Mapping[str, ParameterPool] = {}
    results: Mapping[str, Names] = {}


ToolPools = Mapping[str, ToolPool]
_POOLS: TypeAdapter[dict[str, ToolPool]] = TypeAdapter(dict[str, ToolPool])


def read_pools(path: str | Path, toolbox: Toolbox | None = None) -> dict[str, ToolPool]:
    """Return the pools in a JSON file by the names of their tools.

    With a toolbox, only its tools, parameters and result fields may have pools. ``InputError``
    for other pools, for an unreadable or malformed file, for an alternative name that belongs to
    two tools or is no identifier, and for a description that is empty, not Unicode or names a tool.
    """
    try:
        pools = _POOLS.validate_python(json.loads(Path(path).read_text(encoding="utf-8")))
    except ValidationError as error:
        raise InputError(
            f"{path}: {first_problem(error)} A tool's pool is an object of names, descriptions, "
            "parameters (each with names and descriptions) and results (each a list of names)."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a file of tool pools: {error}.") from error
    unknown_names: Iterable[str] = _unknown_name_problems(pools, toolbox) if toolbox else ()
    for problem in chain(_content_problems(pools), unknown_names):
        raise InputError(f"{path}: {problem}")
    return pools


def named_tools(text: str, tools: Iterable[str]) -> Iterator[str]:
    """Yield the tools that a text names, except tools whose name can be an ordinary word."""
    for tool in tools:
        # Most texts lack the name, and the substring test is faster than a regular expression.
        may_be_named = tool in text and _IDENTIFIER_LIKE.search(tool)
        if may_be_named and re.search(rf"\b{re.escape(tool)}\b", text):
            yield tool


def key_of(name: str) -> str:
    """Return a name in lower case without underscores; names with equal keys count as equal."""
    return name.replace("_", "").casefold()


def _content_problems(pools: ToolPools) -> Iterator[str]:
    tool_of_key = {key_of(tool): tool for tool in pools}
    for tool, pool in pools.items():
        if tool == NO_EVIDENCE.name and pool.names:
            yield f"{tool}.names: This tool keeps its name in every toolbox. Remove its names."
        for name in pool.names:
            owner = tool_of_key.setdefault(key_of(name), tool)
            if owner != tool:
                yield (
                    f"{tool}.names: {name!r} could be the name of {owner} too. "
                    "Give each tool different names."
                )
        described_pools: dict[str, ParameterPool] = {tool: pool}
        described_pools |= {f"{tool}.parameters.{name}": p for name, p in pool.parameters.items()}
        for field, described_pool in described_pools.items():
            for text in described_pool.descriptions:
                if other := next(named_tools(text, pools), None):
                    yield (
                        f"{field}.descriptions: The description {text!r:.60} names the tool "
                        f"{other}, which may be renamed or absent. Write it without tool names."
                    )


def _unknown_name_problems(pools: ToolPools, toolbox: Toolbox) -> Iterator[str]:
    for tool, pool in pools.items():
        if tool not in toolbox:
            yield f"The toolbox has no tool {tool!r}. Its tools are {', '.join(toolbox.names)}."
            continue
        spec = toolbox[tool]
        parameters = [parameter.name for parameter in spec.parameters]
        for field, entries, declared in (
            ("parameters", pool.parameters, parameters),
            ("results", pool.results, spec.results),
        ):
            if unknown := [name for name in entries if name not in declared]:
                yield (
                    f"{tool}.{field}: The tool has no {unknown[0]!r}; it has "
                    f"{', '.join(declared) or 'none'}. Remove it or correct its name."
                )
