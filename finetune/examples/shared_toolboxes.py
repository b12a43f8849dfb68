"""Groups of queries with one drawn toolbox each, so that the prompts of a group share a head."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from casewright.finetune.examples.tevo import DrawnToolbox, Evolved, Posing, draw_toolbox, pose
from casewright.finetune.shots import units
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import tool_from_record

#: Cosines above which two tools may do the same, a question may need a tool, and two questions may
#: need the same tool. They were chosen by hand on the shop's queries with the packaged encoder:
#: nearly all conflicting pairs exceed them, and few random pairs.
SAME_TOOL, WANTED, SAME_QUESTION = 0.35, 0.2, 0.25


class AddedTools:
    """The tools that records add, and the queries whose prompts must not show these tools.

    A gold plan is correct for the toolbox of its annotation, but may be wrong if another query adds
    a tool: a question about the basket has the plan ``customer_support`` only if no tool shows the
    basket.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._rows = {query.record.id: row for row, query in enumerate(queries)}
        adding = [query for query in queries if query.record.tools_extra]
        self._columns = {query.record.id: column for column, query in enumerate(adding)}
        if not adding:
            return
        questions = units(encoder, [query.query for query in queries])
        added = [[tool_from_record(tool) for tool in query.record.tools_extra] for query in adding]
        owners = np.repeat(np.arange(len(adding)), [*map(len, added)])
        specs = list(chain.from_iterable(added))
        tools = units(encoder, [f"{tool.name}: {tool.description}" for tool in specs])
        names = np.array([tool.name for tool in specs])
        same = (tools @ tools.T >= SAME_TOOL) | (names[:, None] == names)
        adding_questions = questions[[self._rows[query.record.id] for query in adding]]
        self._wants = questions @ adding_questions.T >= SAME_QUESTION
        self._alike = np.zeros((len(adding), len(adding)), bool)
        for number, owner in enumerate(owners):
            self._wants[:, owner] |= questions @ tools[number] >= WANTED
            self._alike[owner, owners[same[number]]] = True

    def may_see(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query needs none of the tools that the founders of a toolbox add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(founder.record.id) for founder in founders)
        return all(column is None or not self._wants[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query that adds tools may become a founder of a toolbox.

        The added tools must have different purposes, and no question may need another's tools.
        """
        column = self._columns[query.record.id]
        return self.may_see(query, founders) and all(
            self.may_see(founder, [query])
            and not self._alike[column, self._columns[founder.record.id]]
            for founder in founders
        )


#: Maximum number of queries that add tools to one toolbox. If each had a toolbox of its own, few
#: prompts would have the domain's tools only.
FOUNDERS = 4


def pose_queries(
    queries: Sequence[AnnotatedQuery], posing: Posing, encoder: Encoder, *, seed: int, copies: int
) -> Iterator[tuple[int, list[Evolved], random.Random]]:
    """Yield each toolbox's copy number, queries and random generator.

    In each copy every query has one toolbox. The draw depends on the seed and the queries with
    their ids, not on their order. The encoder is used only if queries share toolboxes.
    """
    deal = _Deal(queries, posing, encoder)
    for copy in range(1, copies + 1):
        deal.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while founders := deal.founders():
            # A text is a seed that is the same in every process, unlike its hash.
            rng = random.Random(f"{seed}:{founders[0].record.id}:{copy}")
            drawn = draw_toolbox(founders, posing, rng)
            members = [*founders, *deal.joining(founders, drawn)]
            yield copy, pose(members, drawn, posing, rng), rng


class _Deal:
    """The queries of a copy that have no toolbox yet, in two queues: with added tools, without."""

    def __init__(self, queries: Sequence[AnnotatedQuery], posing: Posing, encoder: Encoder) -> None:
        self._size = posing.settings.queries_per_toolbox
        self._queries = sorted(queries, key=lambda query: str(query.record.id))
        self._added = AddedTools(self._queries if self._size > 1 else (), encoder)
        self._needs = {query.record.id: frozenset(query.plan.tools) for query in queries}
        self._removed = {
            query.record.id: frozenset(posing.toolbox.names)
            - frozenset(query.record.request(posing.toolbox).toolbox.names)
            for query in queries
            if query.record.tools_removed
        }

    def shuffle(self, rng: random.Random) -> None:
        """Queue all queries in a random order."""
        self._rng = rng
        order = rng.sample(self._queries, len(self._queries))
        self._adding = deque(query for query in order if query.record.tools_extra)
        self._waiting = deque(query for query in order if not query.record.tools_extra)

    def founders(self) -> list[AnnotatedQuery]:
        """Remove and return the queries to draw the next toolbox for; empty without queries."""
        most = min(FOUNDERS, self._size)
        remaining = len(self._adding) + len(self._waiting)
        # With this probability, both queues become empty at the same time.
        share = -(-len(self._adding) // most) / max(1, -(-remaining // self._size))
        if not self._adding or (self._waiting and self._rng.random() >= share):
            return [self._waiting.popleft()] if self._waiting else []
        results = [self._adding.popleft()]

        def fits(query: AnnotatedQuery) -> bool:
            removed = query.record.tools_removed or results[0].record.tools_removed
            return not removed and self._added.may_join(query, results)

        _move(self._adding, results, most, fits)
        return results

    def joining(
        self, founders: Sequence[AnnotatedQuery], drawn: DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Remove and return the first queries whose plans are correct for a toolbox."""
        results: list[AnnotatedQuery] = []
        tools = set(drawn.toolbox.names)

        def fits(query: AnnotatedQuery) -> bool:
            name = query.record.id
            return (
                self._needs[name] <= tools
                and tools.isdisjoint(self._removed.get(name, ()))
                and self._added.may_see(query, founders)
            )

        _move(self._waiting, results, self._size - len(founders), fits)
        return results


def _move(
    waiting: deque[AnnotatedQuery],
    results: list[AnnotatedQuery],
    most: int,
    fits: Callable[[AnnotatedQuery], bool],
) -> None:
    """Move the first fitting queries to the results, up to ``most`` results."""
    passed: list[AnnotatedQuery] = []
    while waiting and len(results) < most:
        query = waiting.popleft()
        (results if fits(query) else passed).append(query)
    waiting.extendleft(reversed(passed))
