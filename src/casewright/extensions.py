"""Parts that are found by their names: ours, and those of any other installed package.

A package names each in its entry points, in the group of its kind: ``casewright.planners``,
``casewright.generators``, ``casewright.judges``, ``casewright.encoders``, ``casewright.domains``;
``casewright.bench_commands`` and ``casewright.finetune_commands`` hold functions that Typer makes
commands of, and the names in ``casewright.variables`` are the environment variables that a package
reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires
from typing import Any

from casewright.errors import DependencyError, InputError, told

#: The distribution whose parts hide those of others by the same name.
OURS = "casewright"

_points = cache(entry_points)
#: A requirement of an extra: its name, and the extra's.
_REQUIREMENT = re.compile(r"([\w.-]+).*extra == [\"'](\w+)[\"']")
#: Import names of distributions that are called otherwise.
_IMPORTED = {"scikit_learn": "sklearn"}


@cache
def extensions(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by their names, sorted; ours hide others of their names.

    Args:
        kind: ``planner``, ``generator``, ``judge``, ``encoder``, ``domain``, ``bench_command``,
            ``finetune_command`` or ``variable``.
    """
    points = sorted(_points().select(group=f"casewright.{kind}s"), key=lambda point: point.name)
    ours = {point.name: point for point in points if point.dist and point.dist.name == OURS}
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


def missing_package(error: ImportError) -> DependencyError | None:
    """Return the error that names the extra of a package that is not installed.

    Args:
        error: Of importing it.

    Returns:
        ``None`` where no extra brings the package.
    """
    name = (error.name or "").partition(".")[0]
    extra = _extras().get(name)
    if extra is None:
        return None
    return DependencyError(
        f"The package {name} is not installed, which this needs. "
        f"Run: pip install 'casewright[{extra}]'"
    )


@cache
def _extras() -> Mapping[str, str]:
    """Return by a package's import name the extra that brings it."""
    try:
        lines = requires("casewright") or []
    except PackageNotFoundError:
        return {}
    found = (match.groups() for line in lines if (match := _REQUIREMENT.match(line)))
    extras: dict[str, str] = {}
    for name, extra in found:
        module = re.sub("[-.]", "_", name).lower()
        extras.setdefault(_IMPORTED.get(module, module), extra)
    return extras
