"""Queries of a public set, dealt out over small toolboxes that several of them share."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from casewright.finetune.examples.shared_toolboxes import SAME_TOOL, WANTED
from casewright.finetune.examples.toolset import Toolset
from casewright.finetune.shots import units
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import NO_EVIDENCE, Toolbox

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
            found = [waiting.pop(name) for name in members]
            shown = rng.sample(tools, len(tools))
            yield found, Toolbox(self._set.tools[name] for name in shown)

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
        """Say whether a query's plan stays right beside these tools."""
        foreign = [tool for tool in tools if tool not in self._declared[name]]
        if not foreign:
            return True
        vectors = self._tools[[self._names[tool] for tool in foreign]]
        if np.any(vectors @ self._asked[self._rows[name]] >= WANTED):
            return False
        needed = [self._names[tool] for tool in self._needs[name]]
        return not np.any(vectors @ self._tools[needed].T >= SAME_TOOL)
