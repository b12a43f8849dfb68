"""Command groups to which packages add commands. A command is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyCommands(Mapping[str, Any]):
    """Commands by the names that ``names`` returns; each is loaded at its first use."""

    def __init__(self, names: Callable[[], Collection[str]], load: Callable[[str], Any]) -> None:
        self._names = names
        self._load = cache(load)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


class _ExtendedGroup(TyperGroup):
    #: The kind of entry points that name the commands of other packages.
    kind: ClassVar[str]

    def __init__(self, **attributes: Any) -> None:
        from casewright.extensions import extension, extensions

        super().__init__(**attributes)
        built_in = self.commands

        def load(name: str) -> Any:
            if name in built_in:
                return built_in[name]
            app = typer.Typer(add_completion=False)
            app.command(name)(extension(self.kind, name))
            return typer.main.get_command(app)

        self.commands = LazyCommands(  # type: ignore[assignment]
            lambda: dict.fromkeys([*built_in, *extensions(self.kind)]), load
        )


def extended_group(kind: str) -> type[TyperGroup]:
    """Return a class of command groups that also have the commands of entry points of a kind."""
    return type("ExtendedGroup", (_ExtendedGroup,), {"kind": kind})
