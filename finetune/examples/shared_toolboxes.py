"""Groups of queries with one drawn toolbox each, so that the prompts of a group share a head.

A toolbox is drawn for its leaders: one query, or several that add tools. Then it is shared with
members: queries whose plans it can run, and whose plans are still right with the added tools.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from casewright.finetune.examples import tevo
from casewright.finetune.neighbours import tool_embeddings, unit_embeddings
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import tool_from_record

#: Cosines above which two tools may do the same, a question may need a tool, and two questions may
#: need the same tool. They were chosen by hand on the shop's queries with the packaged encoder:
#: nearly all conflicting pairs exceed them, and few random pairs.
SAME_TOOL_SIMILARITY, WANTED_TOOL_SIMILARITY, SAME_QUESTION_SIMILARITY = 0.35, 0.2, 0.25


class AddedTools:
    """The tools that records add, and the queries whose prompts must not show these tools.

    A gold plan is right for the toolbox of its annotation, but may be wrong if another query adds a
    tool: a question about the basket has the plan ``customer_support`` only if no tool shows the
    basket.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._rows = {query.record.id: row for row, query in enumerate(queries)}
        adding = [query for query in queries if query.record.tools_extra]
        self._columns = {query.record.id: column for column, query in enumerate(adding)}
        if not adding:
            return
        questions = unit_embeddings(encoder, [query.query for query in queries])
        added = [[tool_from_record(tool) for tool in query.record.tools_extra] for query in adding]
        owners = np.repeat(np.arange(len(adding)), [*map(len, added)])
        specs = list(chain.from_iterable(added))
        tools = tool_embeddings(encoder, specs)
        names = np.array([tool.name for tool in specs])
        same = (tools @ tools.T >= SAME_TOOL_SIMILARITY) | (names[:, None] == names)
        adding_questions = questions[[self._rows[query.record.id] for query in adding]]
        self._conflicts = questions @ adding_questions.T >= SAME_QUESTION_SIMILARITY
        self._alike = np.zeros((len(adding), len(adding)), bool)
        for row, owner in enumerate(owners):
            self._conflicts[:, owner] |= questions @ tools[row] >= WANTED_TOOL_SIMILARITY
            self._alike[owner, owners[same[row]]] = True

    def may_see(self, query: AnnotatedQuery, leaders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query needs none of the tools that the leaders add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(leader.record.id) for leader in leaders)
        return all(column is None or not self._conflicts[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, leaders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query that adds tools may become one of the leaders.

        Their tools must have different purposes, and no question may need another's tools.
        """
        column = self._columns[query.record.id]
        return self.may_see(query, leaders) and all(
            self.may_see(leader, [query])
            and not self._alike[column, self._columns[leader.record.id]]
            for leader in leaders
        )


#: Maximum number of queries that add tools to one toolbox. If each had a toolbox of its own, few
#: prompts would have the domain's tools only.
MAX_LEADERS = 4


def vary_in_groups(
    queries: Sequence[AnnotatedQuery],
    variation: tevo.PromptVariation,
    encoder: Encoder,
    *,
    seed: int,
    copies: int,
) -> Iterator[tuple[int, list[tevo.VariedQuery], random.Random]]:
    """Yield, for each toolbox, the copy's number, its varied prompts and the random generator.

    In each copy every query has one toolbox. The draw depends on the seed and the queries with
    their ids, not on their order. The encoder is used only if queries share toolboxes.
    """
    queues = _Queues(queries, variation, encoder)
    for copy in range(1, copies + 1):
        queues.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while leaders := queues.leaders():
            # A text is a seed that is the same in every process, unlike its hash.
            rng = random.Random(f"{seed}:{leaders[0].record.id}:{copy}")
            drawn = tevo.draw_toolbox(leaders, variation, rng)
            group = [*leaders, *queues.members(leaders, drawn)]
            yield copy, tevo.vary_prompts(group, drawn, variation, rng), rng


class _Queues:
    """The queries without a toolbox yet in this copy; those that add tools have their own queue."""

    def __init__(
        self, queries: Sequence[AnnotatedQuery], variation: tevo.PromptVariation, encoder: Encoder
    ) -> None:
        self._size = variation.settings.queries_per_toolbox
        self._queries = sorted(queries, key=lambda query: str(query.record.id))
        self._added = AddedTools(self._queries if self._size > 1 else (), encoder)
        self._needs = {query.record.id: frozenset(query.plan.tools) for query in queries}
        names = frozenset(variation.toolbox.names)
        self._removed = {
            query.record.id: names.difference(query.record.request(variation.toolbox).toolbox.names)
            for query in queries
            if query.record.tools_removed
        }

    def shuffle(self, rng: random.Random) -> None:
        """Queue all queries in a random order."""
        self._rng = rng
        order = rng.sample(self._queries, len(self._queries))
        self._adding = deque(query for query in order if query.record.tools_extra)
        self._waiting = deque(query for query in order if not query.record.tools_extra)

    def leaders(self) -> list[AnnotatedQuery]:
        """Remove and return the leaders of the next toolbox; none if both queues are empty."""
        limit = min(MAX_LEADERS, self._size)
        remaining = len(self._adding) + len(self._waiting)
        # With this probability, both queues become empty at the same time.
        share = math.ceil(len(self._adding) / limit) / max(1, math.ceil(remaining / self._size))
        if not self._adding or (self._waiting and self._rng.random() >= share):
            return [self._waiting.popleft()] if self._waiting else []
        results = [self._adding.popleft()]

        def fits(query: AnnotatedQuery) -> bool:
            removed = query.record.tools_removed or results[0].record.tools_removed
            return not removed and self._added.may_join(query, results)

        _move_fitting(self._adding, results, limit, fits)
        return results

    def members(
        self, leaders: Sequence[AnnotatedQuery], drawn: tevo.DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Remove and return the first other queries whose plans are right for a toolbox."""
        results: list[AnnotatedQuery] = []
        tools = set(drawn.toolbox.names)

        def fits(query: AnnotatedQuery) -> bool:
            id_ = query.record.id
            can_run = self._needs[id_] <= tools and tools.isdisjoint(self._removed.get(id_, ()))
            return can_run and self._added.may_see(query, leaders)

        _move_fitting(self._waiting, results, self._size - len(leaders), fits)
        return results


def _move_fitting(
    waiting: deque[AnnotatedQuery],
    results: list[AnnotatedQuery],
    limit: int,
    fits: Callable[[AnnotatedQuery], bool],
) -> None:
    """Move the first fitting queries to the results, up to ``limit`` results."""
    passed: list[AnnotatedQuery] = []
    while waiting and len(results) < limit:
        query = waiting.popleft()
        (results if fits(query) else passed).append(query)
    waiting.extendleft(reversed(passed))
