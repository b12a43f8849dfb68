"""Queries dealt to drawn toolboxes, several to each, so that their prompts share a head."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from casewright.finetune.examples.tevo import DrawnToolbox, Evolved, Posing, draw_toolbox, pose
from casewright.finetune.shots import units
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import tool_from_record

#: Cosines from which two tools may do the same, a question may need a tool, and two questions may
#: need the same tool. Set by eye on the shop's queries with the packaged encoder: nearly all
#: conflicting pairs are above them, and few random pairs.
SAME_TOOL, WANTED, SAME_QUESTION = 0.35, 0.2, 0.25


class AddedTools:
    """The tools that records add, and the queries whose prompts must not show them.

    A gold plan is correct for the toolbox that it was annotated with, but may be wrong beside a
    tool that another query added: a question about the basket is annotated with
    ``customer_support`` until a tool shows the basket.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._rows = {query.record.id: row for row, query in enumerate(queries)}
        adding = [query for query in queries if query.record.tools_extra]
        self._columns = {query.record.id: column for column, query in enumerate(adding)}
        if not adding:
            return
        questions = units(encoder, [query.query for query in queries])
        added = [
            (column, tool_from_record(tool))
            for column, query in enumerate(adding)
            for tool in query.record.tools_extra
        ]
        tools = units(encoder, [f"{tool.name}: {tool.description}" for _, tool in added])
        names = np.array([tool.name for _, tool in added])
        same = (tools @ tools.T >= SAME_TOOL) | (names[:, None] == names)
        adding_questions = questions[[self._rows[query.record.id] for query in adding]]
        self._wants = questions @ adding_questions.T >= SAME_QUESTION
        self._alike = np.zeros((len(adding), len(adding)), bool)
        owners = np.array([column for column, _ in added])
        for number, owner in enumerate(owners):
            self._wants[:, owner] |= questions @ tools[number] >= WANTED
            self._alike[owner, owners[same[number]]] = True

    def may_see(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return whether a query needs none of the tools that the founders of a toolbox add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(founder.record.id) for founder in founders)
        return all(column is None or not self._wants[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Return whether a query that adds tools may become one of a toolbox's founders.

        The queries' tools must have different purposes, and no question may need a tool of another
        query.
        """
        column = self._columns[query.record.id]
        return self.may_see(query, founders) and all(
            self.may_see(founder, [query])
            and not self._alike[column, self._columns[founder.record.id]]
            for founder in founders
        )


#: Maximum number of queries that add tools to one toolbox. With one toolbox for each of them, few
#: prompts would have the domain's tools only.
FOUNDERS = 4


def pose_queries(
    queries: Sequence[AnnotatedQuery], posing: Posing, encoder: Encoder, *, seed: int, copies: int
) -> Iterator[tuple[int, list[Evolved], random.Random]]:
    """Yield for each toolbox the copy's number, the toolbox's queries, and its random generator.

    In each copy every query has exactly one toolbox. The draw depends on the seed, the queries and
    their ids, not on their order. The encoder is used only if queries share toolboxes.
    """
    deal = _Deal(queries, posing, encoder)
    for copy in range(1, copies + 1):
        deal.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while founders := deal.founders():
            # Seeds of texts are the same in every process.
            rng = random.Random(f"{seed}:{founders[0].record.id}:{copy}")
            drawn = draw_toolbox(founders, posing, rng)
            members = [*founders, *deal.joining(founders, drawn)]
            yield copy, pose(members, drawn, posing, rng), rng


class _Deal:
    """The queries of a copy without a toolbox; those that add tools are in a second queue."""

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
        self._adding: deque[AnnotatedQuery] = deque()
        self._waiting: deque[AnnotatedQuery] = deque()

    def shuffle(self, rng: random.Random) -> None:
        """Queue all queries again, in another order."""
        self._rng = rng
        order = rng.sample(self._queries, len(self._queries))
        self._adding = deque(query for query in order if query.record.tools_extra)
        self._waiting = deque(query for query in order if not query.record.tools_extra)

    def founders(self) -> list[AnnotatedQuery]:
        """Take the queries that the next toolbox is drawn for; empty if no query is left."""
        most = min(FOUNDERS, self._size)
        left = len(self._adding) + len(self._waiting)
        # The probability with which both queues run empty together.
        share = -(-len(self._adding) // most) / max(1, -(-left // self._size))
        if not self._adding or (self._waiting and self._rng.random() >= share):
            return [self._waiting.popleft()] if self._waiting else []
        results = [self._adding.popleft()]
        if not results[0].record.tools_removed:

            def fits(query: AnnotatedQuery) -> bool:
                return not query.record.tools_removed and self._added.may_join(query, results)

            _take(self._adding, most, fits, results)
        return results

    def joining(
        self, founders: Sequence[AnnotatedQuery], drawn: DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Take the first queries whose plans are correct for a toolbox."""
        results: list[AnnotatedQuery] = []
        tools = set(drawn.toolbox.names)

        def fits(query: AnnotatedQuery) -> bool:
            name = query.record.id
            return (
                self._needs[name] <= tools
                and tools.isdisjoint(self._removed.get(name, ()))
                and self._added.may_see(query, founders)
            )

        _take(self._waiting, self._size - len(founders), fits, results)
        return results


def _take(
    waiting: deque[AnnotatedQuery],
    most: int,
    fits: Callable[[AnnotatedQuery], bool],
    results: list[AnnotatedQuery],
) -> None:
    """Move the first queries that fit to the results until they are ``most``."""
    passed: list[AnnotatedQuery] = []
    while waiting and len(results) < most:
        query = waiting.popleft()
        (results if fits(query) else passed).append(query)
    waiting.extendleft(reversed(passed))
