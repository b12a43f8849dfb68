"""Planners, domains and other parts by name, from the entry points of installed packages.

Each kind of part has a group: ``casewright.planners``, ``casewright.generators``,
``casewright.judges``, ``casewright.encoders``, ``casewright.domains``. The entry points in
``casewright.bench_commands`` and ``casewright.finetune_commands`` are functions, of which Typer
makes commands; the names in ``casewright.variables`` are environment variables of a package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires
from typing import Any

from casewright.errors import DependencyError, InputError, one_line

#: The distribution whose parts have precedence over parts of the same name in other packages.
PACKAGE = "casewright"

_entry_points = cache(entry_points)
#: A requirement of an extra; the groups are the names of the distribution and of the extra.
_REQUIREMENT = re.compile(r"([\w.-]+).*extra == [\"'](\w+)[\"']")
#: The import name of each distribution that has another name.
_IMPORT_NAMES = {"scikit_learn": "sklearn"}


@cache
def extensions(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by name, sorted; ``PACKAGE`` has precedence.

    Args:
        kind: ``planner``, ``generator``, ``judge``, ``encoder``, ``domain``, ``bench_command``,
            ``finetune_command`` or ``variable``.
    """
    points = sorted(_entry_points().select(group=f"casewright.{kind}s"), key=lambda p: p.name)
    own = {point.name: point for point in points if point.dist and point.dist.name == PACKAGE}
    return {point.name: own.get(point.name, point) for point in points}


@cache
def extension(kind: str, name: str) -> Any:
    """Return the object to which the entry point of this kind and name refers.

    Raises:
        InputError: There is no such entry point; the message lists the existing names.
        DependencyError: The package of the entry point cannot be imported.
    """
    point = extensions(kind).get(name)
    if point is None:
        raise InputError(f"There is no {kind} {name!r}. {kind.capitalize()}s are: {listed(kind)}.")
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        owner = point.dist.name if point.dist else point.module
        raise DependencyError(
            f"The {kind} {name!r} is {point.value} of the package {owner}, which cannot be "
            f"imported: {one_line(error)}. Mend or remove that package."
        ) from error


def listed(kind: str) -> str:
    """Return the names of all parts of a kind, joined by commas."""
    return ", ".join(extensions(kind))


def check_extension(kind: str, name: str, *further_names: str) -> None:
    """Check that a name names a part, or may name a chat model.

    Args:
        kind: See ``extensions``.
        name: The name of a part, or ``provider:model`` for a chat model.
        further_names: Other valid names.

    Raises:
        InputError: The name is unknown; the message lists the existing names.
    """
    if name not in extensions(kind) and name not in further_names and ":" not in name:
        raise InputError(
            f"There is no {kind} {name!r}. {kind.capitalize()}s are: {listed(kind)}, or a chat "
            "model as provider:model, for example openai:gpt-4o-mini."
        )


def missing_package(error: ImportError) -> DependencyError | None:
    """Return an error that names the extra with a missing package; ``None`` if no extra has it."""
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
    """Return a mapping from a package's import name to the extra that installs it."""
    try:
        lines = requires("casewright") or []
    except PackageNotFoundError:
        return {}
    matches = filter(None, map(_REQUIREMENT.match, lines))
    extras: dict[str, str] = {}
    for name, extra in (match.groups() for match in matches):
        module = re.sub("[-.]", "_", name).lower()
        extras.setdefault(_IMPORT_NAMES.get(module, module), extra)
    return extras
