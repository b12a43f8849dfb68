"""Parts that are found by their names: ours, and those of any other installed package.

A package names each in its entry points, in the group of its kind: ``casewright.planners``,
``casewright.generators``, ``casewright.judges``, ``casewright.encoders`` or ``casewright.domains``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from casewright.errors import DependencyError, InputError, told

_points = cache(entry_points)


@cache
def extensions(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by their names, sorted; ours hide others of their names.

    Args:
        kind: ``planner``, ``generator``, ``judge``, ``encoder`` or ``domain``.
    """
    points = sorted(_points().select(group=f"casewright.{kind}s"), key=lambda point: point.name)
    ours = {point.name: point for point in points if point.module.startswith("casewright")}
    return {point.name: ours.get(point.name, point) for point in points}


@cache
def extension(kind: str, name: str) -> Any:
    """Return what the entry point of this kind and name stands for.

    Raises:
        InputError: There is none; lists those that there are.
        DependencyError: Its package cannot be imported.
    """
    known = extensions(kind)
    if name not in known:
        raise InputError(f"There is no {kind} {name!r}. {kind.capitalize()}s are: {listed(kind)}.")
    try:
        return known[name].load()
    except (ImportError, AttributeError) as error:
        point = known[name]
        owner = point.dist.name if point.dist else point.module
        raise DependencyError(
            f"The {kind} {name!r} is {point.value} of the package {owner}, which cannot be "
            f"imported: {told(error)}. Mend or remove that package."
        ) from error


def listed(kind: str) -> str:
    """Return the names of a kind, for people."""
    return ", ".join(extensions(kind))


def check_extension(kind: str, name: str, *more: str) -> None:
    """Look whether something of this kind has this name, or a chat model may have it.

    Args:
        kind: See ``extensions``.
        name: What was given; what holds a colon is a chat model's, as ``provider:model``.
        more: Further names that may be given.

    Raises:
        InputError: Nothing has it; lists those that there are.
    """
    if name not in extensions(kind) and name not in more and ":" not in name:
        raise InputError(
            f"There is no {kind} {name!r}. {kind.capitalize()}s are: {listed(kind)}, or a chat "
            "model as provider:model, for example openai:gpt-4o-mini."
        )
