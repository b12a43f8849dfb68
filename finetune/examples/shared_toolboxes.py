"""Groups queries under one drawn toolbox each, so that the prompts of a group have the same head.

A toolbox is drawn for its *leaders*: one query, or several queries that add tools. Its *members*
are further queries. Their plans call only its tools, and no added tool makes these plans wrong.
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

#: Minimum cosines of two tools that may have the same purpose, of a question and a tool that it may
#: need, and of two questions that may need the same tool. They were chosen by hand on the shop's
#: queries with the packaged encoder: nearly all conflicting pairs and few random pairs exceed them.
SAME_TOOL_SIMILARITY, WANTED_TOOL_SIMILARITY, SAME_QUESTION_SIMILARITY = 0.35, 0.2, 0.25


class AddedTools:
    """The tools that queries add to a toolbox, and the queries whose prompts must not list them.

    A gold plan is right for the toolbox of its annotation, but may be wrong if another query adds a
    tool. For example, the plan of a question about the basket calls ``customer_support`` only if no
    tool shows the basket.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._rows = {query.record.id: row for row, query in enumerate(queries)}
        adders = [query for query in queries if query.record.tools_extra]
        self._columns = {query.record.id: column for column, query in enumerate(adders)}
        if not adders:
            return
        questions = unit_embeddings(encoder, [query.query for query in queries])
        added = [[tool_from_record(tool) for tool in query.record.tools_extra] for query in adders]
        owners = np.repeat(np.arange(len(adders)), [*map(len, added)])
        added_specs = list(chain.from_iterable(added))
        tools = tool_embeddings(encoder, added_specs)
        names = np.array([tool.name for tool in added_specs])
        same_purpose = (tools @ tools.T >= SAME_TOOL_SIMILARITY) | (names[:, None] == names)
        adding_questions = questions[[self._rows[query.record.id] for query in adders]]
        self._conflicts = questions @ adding_questions.T >= SAME_QUESTION_SIMILARITY
        self._have_similar_tools = np.zeros((len(adders), len(adders)), bool)
        for tool_index, owner in enumerate(owners):
            self._conflicts[:, owner] |= questions @ tools[tool_index] >= WANTED_TOOL_SIMILARITY
            self._have_similar_tools[owner, owners[same_purpose[tool_index]]] = True

    def may_see(self, query: AnnotatedQuery, leaders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query needs none of the tools that the leaders add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(leader.record.id) for leader in leaders)
        return all(column is None or not self._conflicts[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, leaders: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query that adds tools may become one of the leaders.

        Its tools must have other purposes than the leaders', and no query may need another's tools.
        """
        column = self._columns[query.record.id]
        return self.may_see(query, leaders) and all(
            self.may_see(leader, [query])
            and not self._have_similar_tools[column, self._columns[leader.record.id]]
            for leader in leaders
        )


#: Maximum number of queries that add tools to one toolbox. If each of these queries had its own
#: toolbox, few prompts would list only the domain's tools.
MAX_LEADERS = 4


def vary_in_groups(
    queries: Sequence[AnnotatedQuery],
    variation: tevo.PromptVariation,
    encoder: Encoder,
    *,
    seed: int,
    copies: int,
) -> Iterator[tuple[int, list[tevo.VariedQuery], random.Random]]:
    """Yield each toolbox's group: the copy's number, the varied prompts and the random generator.

    A copy is a pass over all queries, with one prompt for each. The draw depends on the seed and
    the queries, not on their order. The encoder is used only if queries share toolboxes.
    """
    queues = _Queues(queries, variation, encoder)
    for copy in range(1, copies + 1):
        queues.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while leaders := queues.take_leaders():
            # The seed is a text, because the hash of a text differs between processes.
            rng = random.Random(f"{seed}:{leaders[0].record.id}:{copy}")
            drawn = tevo.draw_toolbox(leaders, variation, rng)
            group = [*leaders, *queues.take_members(leaders, drawn)]
            yield copy, tevo.vary_prompts(group, drawn, variation, rng), rng


class _Queues:
    """Queues of the queries without a toolbox in this copy; those in ``_adders`` add tools."""

    def __init__(
        self, queries: Sequence[AnnotatedQuery], variation: tevo.PromptVariation, encoder: Encoder
    ) -> None:
        self._group_size = variation.settings.queries_per_toolbox
        self._queries = sorted(queries, key=lambda query: str(query.record.id))
        self._added_tools = AddedTools(self._queries if self._group_size > 1 else (), encoder)
        self._called_tools = {query.record.id: frozenset(query.plan.tools) for query in queries}
        names = frozenset(variation.toolbox.names)
        self._removed_tools = {
            query.record.id: names.difference(query.record.request(variation.toolbox).toolbox.names)
            for query in queries
            if query.record.tools_removed
        }

    def shuffle(self, rng: random.Random) -> None:
        """Put all queries into the queues, in a random order."""
        self._rng = rng
        shuffled = rng.sample(self._queries, len(self._queries))
        self._adders = deque(query for query in shuffled if query.record.tools_extra)
        self._others = deque(query for query in shuffled if not query.record.tools_extra)

    def take_leaders(self) -> list[AnnotatedQuery]:
        """Remove and return the leaders of the next toolbox; an empty list if no query is left."""
        limit = min(MAX_LEADERS, self._group_size)
        remaining = len(self._adders) + len(self._others)
        toolboxes = max(1, math.ceil(remaining / self._group_size))
        # With this probability, both queues become empty at the same time.
        probability = math.ceil(len(self._adders) / limit) / toolboxes
        if not self._adders or (self._others and self._rng.random() >= probability):
            return [self._others.popleft()] if self._others else []
        leaders = [self._adders.popleft()]

        def may_lead(query: AnnotatedQuery) -> bool:
            removed = query.record.tools_removed or leaders[0].record.tools_removed
            return not removed and self._added_tools.may_join(query, leaders)

        _move_fitting(self._adders, leaders, limit, may_lead)
        return leaders

    def take_members(
        self, leaders: Sequence[AnnotatedQuery], drawn: tevo.DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Remove and return the first queries whose plans are right for the leaders' toolbox."""
        members: list[AnnotatedQuery] = []
        tools = set(drawn.toolbox.names)

        def fits(query: AnnotatedQuery) -> bool:
            id_, removed = query.record.id, self._removed_tools.get(query.record.id, ())
            can_run = self._called_tools[id_] <= tools and tools.isdisjoint(removed)
            return can_run and self._added_tools.may_see(query, leaders)

        _move_fitting(self._others, members, self._group_size - len(leaders), fits)
        return members


def _move_fitting(
    queue: deque[AnnotatedQuery],
    taken: list[AnnotatedQuery],
    limit: int,
    fits: Callable[[AnnotatedQuery], bool],
) -> None:
    """Move the first fitting queries of a queue to ``taken``, until it has ``limit`` queries."""
    skipped: list[AnnotatedQuery] = []
    while queue and len(taken) < limit:
        query = queue.popleft()
        (taken if fits(query) else skipped).append(query)
    queue.extendleft(reversed(skipped))
