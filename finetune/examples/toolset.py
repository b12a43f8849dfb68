"""Queries of a public tool-use set, each with tools of its own, to learn planning from."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator

from casewright.errors import InputError
from casewright.finetune.examples.shots import plain
from casewright.finetune.instructions import tool_queries
from casewright.finetune.instructions.readers.registry import READERS, reader
from casewright.finetune.recipe.section import Section
from casewright.planner import AnnotatedQuery
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec


class ToolsetSource(Section):
    """A public tool-use set.

    Attributes:
        reader: Who reads it: a reader of plans; see ``READERS``.
        path: Its file or folder.
        limit: How many queries to take at most, drawn by the seed; without one, all.
        copies: How often each is posed, each time among other tools.
    """

    reader: str
    path: str = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    copies: int = Field(default=1, ge=1, le=1000)

    @field_validator("reader")
    @classmethod
    def _of_plans(cls, name: str) -> str:
        if not reader(name).plans:
            known = ", ".join(sorted(own for own, one in READERS.items() if one.plans))
            raise ValueError(f"The reader {name!r} reads no plans. Readers that do: {known}.")
        return name


@dataclass(frozen=True, slots=True)
class Toolset:
    """The queries of a set.

    Attributes:
        name: Its reader's.
        queries: Each with an id of its own and a plan that is valid for its tools.
        shown: By query id, the names of the tools that its plan was annotated among.
        tools: By name; one name is one tool in the whole set.
    """

    name: str
    queries: tuple[AnnotatedQuery, ...]
    shown: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, ToolSpec]

    @classmethod
    def read(
        cls,
        source: ToolsetSource,
        measuring: Collection[str],
        seen: set[str],
        rng: random.Random,
        refused: Counter[str],
    ) -> Self:
        """Read a set, each question once.

        Args:
            source: The set.
            measuring: Questions that must not be learned from, as ``plain`` gives them.
            seen: Questions that there were before; is added those of this set.
            rng: Draws which are taken, where there are more than the limit.
            refused: Is added the reasons for which records were left out, and how often.

        Raises:
            InputError: It cannot be read, or has no query that can be used.
        """
        found = tool_queries(source.reader, Path(source.path).expanduser(), refused)
        tools: dict[str, ToolSpec] = {}
        usable = list(_usable(source.reader, found, measuring, seen, tools, refused))
        if not usable:
            raise InputError(
                f"{source.path} has no query to plan for"
                + "".join(f": {n:,} left out, {why}" for why, n in refused.most_common(1))
                + ". Give another set, or remove it from data.toolsets."
            )
        if source.limit is not None and source.limit < len(usable):
            usable = [usable[i] for i in sorted(rng.sample(range(len(usable)), source.limit))]
        queries = tuple(query for query, _ in usable)
        shown = {str(query.record.id): _own(box) for query, box in usable}
        return cls(source.reader, queries, shown, tools)


def _usable(
    name: str,
    found: Sequence[tuple[AnnotatedQuery, Toolbox]],
    measuring: Collection[str],
    seen: set[str],
    tools: dict[str, ToolSpec],
    refused: Counter[str],
) -> Iterator[tuple[AnnotatedQuery, Toolbox]]:
    for query, toolbox in found:
        words = plain(query.query)
        if words in measuring:
            refused[f"{name}: for measuring"] += 1
        elif words in seen:
            refused[f"{name}: a question that was there before"] += 1
        elif any(tools.get(tool.name, tool) != tool for tool in toolbox):
            # Plan cases and examples go from query to query by the names of tools.
            refused[f"{name}: a tool whose name another has"] += 1
        else:
            seen.add(words)
            tools.update({name: toolbox[name] for name in _own(toolbox)})
            yield query, toolbox


def _own(toolbox: Toolbox) -> tuple[str, ...]:
    return tuple(name for name in toolbox.names if name != NO_EVIDENCE.name)
