"""Training examples of public tool-use sets, whose queries have tools of their own."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, field_validator

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.shared_toolboxes import SAME_TOOL, WANTED
from casewright.finetune.examples.tevo import DrawnToolbox, Renaming, TevoSettings, pose
from casewright.finetune.examples.ttg import TtgSettings, tasks_of
from casewright.finetune.instructions import tool_queries
from casewright.finetune.instructions.mixture import SourcePath
from casewright.finetune.instructions.readers.registry import READERS, reader
from casewright.finetune.section import Section
from casewright.finetune.shots import Neighbours, plain, units
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
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
            known = ", ".join(sorted(own for own, item in READERS.items() if item.plans))
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
        result = tool_queries(source.reader, Path(source.path).expanduser(), refused)
        apart = []
        if source.measuring:
            apart = tool_queries(source.reader, Path(source.measuring).expanduser())
        unasked = {*measuring, *(plain(query.query) for query, _ in apart)}
        unseen = {name for _, toolbox in apart for name in _own(toolbox)}
        tools: dict[str, ToolSpec] = {}
        usable: list[tuple[AnnotatedQuery, list[str]]] = []
        for query, toolbox in result:
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


#: Tools of a toolbox at most, ``no_evidence`` not counted, but for a query that needs more.
MOST_TOOLS = 8
#: Queries that are looked at for tools to fill a toolbox with.
LOOKED_AT = 64


class ToolsetGroups:
    """Deals a set's queries out over toolboxes.

    A set says for each query which tools its plan is right among. Beside them stand only tools of
    other queries that are unlike the question, and unlike the tools that it needs.

    Args:
        encoder: Embeds questions and tools; not used where no query shares a toolbox.
        together: Queries of one toolbox at most.
    """

    def __init__(self, toolset: Toolset, encoder: Encoder, together: int) -> None:
        self._set, self._together = toolset, together
        self._needs = {
            str(query.record.id): frozenset(query.plan.tools) - {NO_EVIDENCE.name}
            for query in toolset.queries
        }
        self._declared = {name: frozenset(tools) for name, tools in toolset.shown.items()}
        self._names = {name: number for number, name in enumerate(toolset.tools)}
        self._rows = {str(query.record.id): row for row, query in enumerate(toolset.queries)}
        if together > 1:
            texts = [f"{tool.name}: {tool.description}" for tool in toolset.tools.values()]
            self._tools = units(encoder, texts)
            self._asked = units(encoder, [query.query for query in toolset.queries])

    def deal(self, rng: random.Random) -> Iterator[tuple[list[AnnotatedQuery], Toolbox]]:
        """Yield toolboxes and their queries, until every query has stood under one."""
        order = rng.sample(self._set.queries, len(self._set.queries))
        waiting = {str(query.record.id): query for query in order}
        by_need: dict[frozenset[str], list[str]] = defaultdict(list)
        for name in waiting:
            by_need[self._needs[name]].append(name)
        while waiting:
            leader, *others = islice(waiting, 1 + LOOKED_AT)
            tools = self._led(leader, rng)
            members = [leader]
            if self._together > 1:
                self._fill(members, tools, others)
                self._join(members, tools, by_need, waiting)
            results = [waiting.pop(name) for name in members]
            shown = rng.sample(tools, len(tools))
            yield results, Toolbox(self._set.tools[name] for name in shown)

    def _led(self, leader: str, rng: random.Random) -> list[str]:
        """Return the tools that a query needs, and others of its own until there are enough."""
        needed = sorted(self._needs[leader])
        others = [name for name in self._set.shown[leader] if name not in self._needs[leader]]
        room = min(len(others), max(0, MOST_TOOLS - len(needed)))
        # What other queries bring along are tools to choose among, too.
        count = room if self._together == 1 or not needed else rng.randint(0, room)
        return [*needed, *rng.sample(others, count)]

    def _fill(self, members: list[str], tools: list[str], names: Sequence[str]) -> None:
        """Let other queries bring their tools, as long as there is room."""
        for name in names:
            if len(tools) >= MOST_TOOLS or len(members) == self._together:
                return
            brought = sorted(self._needs[name] - set(tools))
            if (
                brought
                and len(tools) + len(brought) <= MOST_TOOLS
                and self._fits(name, tools)
                and all(self._fits(other, brought) for other in members)
            ):
                tools += brought
                members.append(name)

    def _join(
        self,
        members: list[str],
        tools: Sequence[str],
        by_need: dict[frozenset[str], list[str]],
        waiting: dict[str, AnnotatedQuery],
    ) -> None:
        """Add queries that need no other tools, those of one tool and another in turn."""
        there = set(tools)
        rows = [iter(names) for need, names in by_need.items() if need <= there]
        while rows and len(members) < self._together:
            left = []
            for row in rows:
                name = next(
                    (n for n in row if n in waiting and n not in members and self._fits(n, tools)),
                    None,
                )
                if name is not None:
                    left.append(row)
                    if len(members) < self._together:
                        members.append(name)
            rows = left
        for need in [need for need in by_need if need <= there]:
            by_need[need] = [n for n in by_need[need] if n in waiting and n not in members]

    def _fits(self, name: str, tools: Sequence[str]) -> bool:
        """Return whether a query's plan stays right beside these tools."""
        foreign = [tool for tool in tools if tool not in self._declared[name]]
        if not foreign:
            return True
        vectors = self._tools[[self._names[tool] for tool in foreign]]
        if np.any(vectors @ self._asked[self._rows[name]] >= WANTED):
            return False
        needed = [self._names[tool] for tool in self._needs[name]]
        return not np.any(vectors @ self._tools[needed].T >= SAME_TOOL)


def toolset_examples(
    sources: Sequence[ToolsetSource],
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    *,
    seed: int,
    measuring: Collection[str] = (),
) -> tuple[list[TrainingExample], list[dict[str, Any]]]:
    """Return the examples of all sets, and of each what a manifest says.

    Of TEvo, examples and plan cases vary, which are queries of the same set; names and words of
    the tools are as many as the sets have, and stay.

    Args:
        tevo: How many plan cases and examples prompts show, and how many share a toolbox.
        measuring: Questions that must not be learned from, as ``plain`` gives them.

    Raises:
        InputError: A set cannot be read, or has no query that can be used.
    """
    results: list[TrainingExample] = []
    facts = []
    seen: set[str] = set()
    for number, source in enumerate(sources):
        rng = random.Random(f"{seed}:toolset:{number}")
        refused: Counter[str] = Counter()
        toolset = Toolset.read(source, measuring, seen, rng, refused)
        result = without_duplicates(_examples_of(toolset, source.copies, tevo, ttg, encoder, rng))
        results += result
        read = READERS[source.reader]
        # A part that was kept apart by questions and tools can still measure.
        kept = f" but {Path(source.measuring).name}" if source.measuring else ""
        facts.append(
            {
                "reader": source.reader,
                "queries": len(toolset.queries),
                "tools": len(toolset.tools),
                "examples": len(result),
                "origin": read.origin,
                "licence": read.licence,
                "contaminates": [name + kept for name in read.contaminates],
                "refused": dict(sorted(refused.items())),
            }
        )
    return results, facts


def _examples_of(
    toolset: Toolset,
    copies: int,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    rng: random.Random,
) -> list[TrainingExample]:
    neighbours = None
    if tevo.shots or (tevo.enabled and tevo.examples):
        neighbours = Neighbours(toolset.queries, encoder)
    groups = ToolsetGroups(toolset, encoder, tevo.queries_per_toolbox)
    results = []
    count = len(toolset.queries) * copies
    with progress_bar(f"Making examples of {toolset.name}", count) as advance:
        for copy in range(1, copies + 1):
            for queries, toolbox in groups.deal(rng):
                drawn = DrawnToolbox(toolbox, Renaming(), changed=tevo.enabled)
                for item in pose(queries, drawn, tevo, {}, neighbours, rng):
                    for example in tasks_of(item, ttg, rng):
                        own = example.id if copy == 1 else f"{example.id}@{copy}"
                        results.append(replace(example, id=own))
                advance(len(queries))
    return results
