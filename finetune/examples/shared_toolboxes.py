"""Dealing queries out over toolboxes: several are posed under one, so that prompts share a head."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from casewright.finetune.examples.tevo import (
    DrawnToolbox,
    Evolved,
    TevoSettings,
    draw_toolbox,
    pose,
)
from casewright.finetune.shots import Neighbours, units
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import Toolbox, ToolSpec, tool_from_record

#: Cosines from which two tools may be for the same, a question may want a tool, and two questions
#: may want the same. Set by eye on the shop's queries with the packaged encoder, so that nearly
#: all pairs that clash are above them, and few pairs drawn at random.
SAME_TOOL, WANTED, SAME_QUESTION = 0.35, 0.2, 0.25


class AddedTools:
    """Tools that records add, and the queries that must not see them.

    A gold plan is right for the toolbox that it was annotated with. Under a tool added for another
    query, it may no longer be: a question about the basket, annotated with ``customer_support``
    for want of anything better, beside a tool that shows the basket.

    Args:
        queries: All that toolboxes are drawn for, each with an id of its own.
        encoder: Embeds questions and tools; not used where no record adds a tool.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._rows = {query.record.id: row for row, query in enumerate(queries)}
        bringing = [query for query in queries if query.record.tools_extra]
        self._columns = {query.record.id: column for column, query in enumerate(bringing)}
        if not bringing:
            return
        asked = units(encoder, [query.query for query in queries])
        own = asked[[self._rows[query.record.id] for query in bringing]]
        owned = [
            (column, tool_from_record(tool))
            for column, query in enumerate(bringing)
            for tool in query.record.tools_extra
        ]
        tools = units(encoder, [f"{tool.name}: {tool.description}" for _, tool in owned])
        names = np.array([tool.name for _, tool in owned])
        same = (tools @ tools.T >= SAME_TOOL) | (names[:, None] == names)
        self._wants = asked @ own.T >= SAME_QUESTION
        self._alike = np.zeros((len(bringing), len(bringing)), bool)
        owners = np.array([column for column, _ in owned])
        for number, owner in enumerate(owners):
            self._wants[:, owner] |= asked @ tools[number] >= WANTED
            self._alike[owner, owners[same[number]]] = True

    def may_see(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return whether a query wants none of the tools that the founders of a toolbox add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(founder.record.id) for founder in founders)
        return all(column is None or not self._wants[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return whether a query that adds tools may found a toolbox together with others that do.

        Their tools must be for other things, and no question may want the others' tools.
        """
        own = self._columns[query.record.id]
        return self.may_see(query, founders) and all(
            self.may_see(founder, [query])
            and not self._alike[own, self._columns[founder.record.id]]
            for founder in founders
        )


#: Queries whose records add tools that found one toolbox together, at most: in a toolbox of each
#: one's own, the tools of the domain alone would seldom be seen.
FOUNDERS = 4


@dataclass(frozen=True, slots=True)
class Posing:
    """The toolbox, settings and neighbours that queries are posed with.

    Attributes:
        settings: How much varies, and how many queries share a toolbox.
        neighbours: Where plan cases and examples come from.
    """

    toolbox: Toolbox
    settings: TevoSettings
    pools: Mapping[str, ToolPool] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    distractors: Sequence[ToolSpec] = ()


def posed(
    queries: Sequence[AnnotatedQuery], posing: Posing, encoder: Encoder, *, seed: int, copies: int
) -> Iterator[tuple[int, list[Evolved], random.Random]]:
    """Yield each copy's toolboxes: its number, the queries under one, and what draws for them.

    In each copy every query stands under exactly one toolbox. What is drawn depends on the seed,
    the queries and their ids, not on their order.

    Args:
        queries: Each with an id of its own, a text, and a plan that is valid for its request.
        encoder: Tells which may not share a toolbox; not used where none shares one.

    Raises:
        InputError: A record's request is unusable.
    """
    deal = _Deal(queries, posing, encoder)
    for copy in range(1, copies + 1):
        deal.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while founders := deal.founders():
            # A text, which Python's random numbers hash the same way in every process.
            rng = random.Random(f"{seed}:{founders[0].record.id}:{copy}")
            drawn = draw_toolbox(
                founders,
                posing.toolbox,
                posing.settings,
                posing.pools,
                rng,
                distractors=posing.distractors,
            )
            members = [*founders, *deal.joining(founders, drawn)]
            result = pose(members, drawn, posing.settings, posing.pools, posing.neighbours, rng)
            yield copy, result, rng


class _Deal:
    """Queries that wait for a toolbox; those whose records add tools, in a row of their own."""

    def __init__(self, queries: Sequence[AnnotatedQuery], posing: Posing, encoder: Encoder) -> None:
        self._size = posing.settings.queries_per_toolbox
        self._queries = sorted(queries, key=lambda query: str(query.record.id))
        self._added = AddedTools(self._queries, encoder) if self._size > 1 else None
        self._needs = {query.record.id: frozenset(query.plan.tools) for query in queries}
        self._removed = {
            query.record.id: frozenset(posing.toolbox.names)
            - frozenset(query.record.request(posing.toolbox).toolbox.names)
            for query in queries
            if query.record.tools_removed
        }
        self._adding: deque[AnnotatedQuery] = deque()
        self._waiting: deque[AnnotatedQuery] = deque()

    def shuffle(self, rng: random.Random) -> None:
        """Let all queries wait again, in another order."""
        self._rng = rng
        order = rng.sample(self._queries, len(self._queries))
        self._adding = deque(query for query in order if query.record.tools_extra)
        self._waiting = deque(query for query in order if not query.record.tools_extra)

    def founders(self) -> list[AnnotatedQuery]:
        """Take the queries that the next toolbox is drawn for; none where none waits."""
        most = min(FOUNDERS, self._size)
        left = len(self._adding) + len(self._waiting)
        # So often that both rows come to their ends together.
        adds = -(-len(self._adding) // most) / max(1, -(-left // self._size))
        if not self._adding or (self._waiting and self._rng.random() >= adds):
            return [self._waiting.popleft()] if self._waiting else []
        results = [self._adding.popleft()]
        if (added := self._added) is not None and not results[0].record.tools_removed:

            def fits(query: AnnotatedQuery) -> bool:
                return not query.record.tools_removed and added.may_join(query, results)

            _take(self._adding, most, fits, results)
        return results

    def joining(
        self, founders: Sequence[AnnotatedQuery], drawn: DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Take the first queries that wait and whose plans are right for a toolbox."""
        results: list[AnnotatedQuery] = []
        there = set(drawn.own.names)
        if (added := self._added) is None:
            return results

        def fits(query: AnnotatedQuery) -> bool:
            name = query.record.id
            return (
                self._needs[name] <= there
                and there.isdisjoint(self._removed.get(name, ()))
                and added.may_see(query, founders)
            )

        _take(self._waiting, self._size - len(founders), fits, results)
        return results


def _take(
    waiting: deque[AnnotatedQuery],
    most: int,
    fits: Callable[[AnnotatedQuery], bool],
    found: list[AnnotatedQuery],
) -> None:
    """Move the first queries that fit to those found, until there are so many; no others move."""
    passed: list[AnnotatedQuery] = []
    while waiting and len(found) < most:
        query = waiting.popleft()
        (found if fits(query) else passed).append(query)
    waiting.extendleft(reversed(passed))
