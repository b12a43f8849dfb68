"""The ordered set of tools of one request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from casewright.errors import ToolError
from casewright.tools.spec import NO_EVIDENCE, ToolSpec


class Toolbox:
    """An immutable, ordered set of tools; always holds ``no_evidence``.

    Raises:
        ToolError: Two tools have one name.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        given = list(tools)
        if all(tool.name != NO_EVIDENCE.name for tool in given):
            given.append(NO_EVIDENCE)
        self._tools = {tool.name: tool for tool in given}
        if len(self._tools) != len(given):
            names = sorted(t.name for t in given)
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ToolError(f"The toolbox has two tools named {twice}. Rename one of them.")

    def without(self, *names: str) -> Toolbox:
        """Return a toolbox without these tools; ``no_evidence`` stays in every toolbox.

        Raises:
            ToolError: A name is not in this toolbox.
        """
        if unknown := [name for name in names if name not in self._tools]:
            raise ToolError(
                f"The toolbox has no tool {unknown}. Its tools are {list(self._tools)}."
            )
        return Toolbox(tool for tool in self if tool.name not in names)

    def with_(self, *tools: ToolSpec) -> Toolbox:
        """Return a toolbox with these tools added, before ``no_evidence`` if it stands last."""
        current = list(self)
        if current[-1].name == NO_EVIDENCE.name:
            return Toolbox([*current[:-1], *tools, current[-1]])
        return Toolbox([*current, *tools])

    def __getitem__(self, name: str) -> ToolSpec:
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolbox({list(self._tools)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._tools)

    def fingerprint(self) -> str:
        """Return a hash of everything that a planner sees of the tools."""
        seen = [
            [
                tool.signature(),
                tool.description,
                [[parameter.kind, parameter.description] for parameter in tool.parameters],
                tool.example and [tool.example.query, tool.example.plan],
            ]
            for tool in self
        ]
        return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:16]
