"""Groups of commands to which installed packages add functions of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from casewright.extensions import extension, extensions


class _Commands(Mapping[str, Any]):
    """Our commands by name, and those of packages, each imported when it is first used."""

    def __init__(self, ours: Mapping[str, Any], kind: str) -> None:
        self._commands = dict(ours)
        self._kind = kind

    def __getitem__(self, name: str) -> Any:
        if name not in self._commands and name in extensions(self._kind):
            app = typer.Typer(add_completion=False)
            app.command(name)(extension(self._kind, name))
            self._commands[name] = typer.main.get_command(app)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._commands, *extensions(self._kind)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _ExtendedGroup(TyperGroup):
    kind: ClassVar[str]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(self.commands, self.kind)  # type: ignore[assignment]


class BenchGroup(_ExtendedGroup):
    """The group of ``casewright bench``."""

    kind = "bench_command"


class FinetuneGroup(_ExtendedGroup):
    """The group of ``casewright finetune``."""

    kind = "finetune_command"
