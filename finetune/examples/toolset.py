"""Queries of a public tool-use set, each with tools of its own, to learn planning from."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator

from casewright.errors import InputError
from casewright.finetune.instructions import tool_queries
from casewright.finetune.instructions.readers.registry import READERS, reader
from casewright.finetune.instructions.settings import SourcePath
from casewright.finetune.section import Section
from casewright.finetune.shots import plain
from casewright.planner import AnnotatedQuery
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec


class ToolsetSource(Section):
    """A public tool-use set.

    Attributes:
        reader: Who reads it: a reader of plans; see ``READERS``.
        path: Its file or folder.
        limit: How many queries to take at most, drawn by the seed; without one, all.
        copies: How often each is posed, each time among other tools.
        measuring: A file or folder of the same reader that planners are measured by: its questions
            and its tools are not learned from.
    """

    reader: str
    path: SourcePath = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    copies: int = Field(default=1, ge=1, le=1000)
    measuring: SourcePath = ""

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
        queries: Each with an id of its own and a plan that is valid for its tools.
        shown: By query id, the names of the tools that its plan was annotated among.
        tools: By name; one name is one tool in the whole set.
    """

    name: str
    queries: Sequence[AnnotatedQuery]
    shown: Mapping[str, Sequence[str]]
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
            measuring: Questions that must not be learned from, as ``plain`` gives them.
            seen: Questions that there were before; is added those of this set.
            rng: Draws which are taken, where there are more than the limit.
            refused: Is added the reasons for which records were left out, and how often.

        Raises:
            InputError: It cannot be read, or has no query that can be used.
        """
        found = tool_queries(source.reader, Path(source.path).expanduser(), refused)
        apart = []
        if source.measuring:
            apart = tool_queries(source.reader, Path(source.measuring).expanduser())
        unasked = {*measuring, *(plain(query.query) for query, _ in apart)}
        unseen = {name for _, toolbox in apart for name in _own(toolbox)}
        tools: dict[str, ToolSpec] = {}
        usable: list[tuple[AnnotatedQuery, list[str]]] = []
        for query, toolbox in found:
            shown = [name for name in _own(toolbox) if name not in unseen]
            words, why = plain(query.query), ""
            if not unseen.isdisjoint(query.plan.tools):
                why = "a tool for measuring"
            elif words in unasked:
                why = "for measuring"
            elif words in seen:
                why = "a question that was there before"
            elif any(tools.get(name, toolbox[name]) != toolbox[name] for name in shown):
                # Plan cases and examples go from query to query by the names of tools.
                why = "a tool whose name another has"
            if why:
                refused[f"{source.reader}: {why}"] += 1
                continue
            seen.add(words)
            tools.update({name: toolbox[name] for name in shown})
            usable.append((query, shown))
        if not usable:
            raise InputError(
                f"{source.path} has no query to plan for"
                + "".join(f": {n:,} left out, {why}" for why, n in refused.most_common(1))
                + ". Give another set, or remove it from data.toolsets."
            )
        if source.limit is not None and source.limit < len(usable):
            usable = [usable[i] for i in sorted(rng.sample(range(len(usable)), source.limit))]
        shown_by = {str(query.record.id): names for query, names in usable}
        return cls(source.reader, tuple(query for query, _ in usable), shown_by, tools)


def _own(toolbox: Toolbox) -> list[str]:
    return [name for name in toolbox.names if name != NO_EVIDENCE.name]
