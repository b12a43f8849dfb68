"""Groups queries that share a random toolbox, so that a group's prompts begin with the same text.

A group's toolbox is drawn for the group's *base queries* (``bases``): one query, or several queries
that add tools. The other queries, the *members*, call only tools of the toolbox, and none of the
added tools makes their plans wrong.
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

# These cosines were chosen by hand: nearly all conflicting pairs exceed them, few random pairs do.
#: Minimum cosine of two tools that may have the same purpose.
SAME_TOOL_SIMILARITY = 0.35
#: Minimum cosine of a question and a tool that the question may need.
NEEDED_TOOL_SIMILARITY = 0.2
#: Minimum cosine of two questions that may need the same tool.
SAME_QUESTION_SIMILARITY = 0.25


class AddedTools:
    """Finds queries whose prompts must not list a tool that another query adds to the toolbox.

    A gold plan is right for the toolbox of its annotation, but may be wrong if another query adds a
    tool. For example, the plan of a question about the basket calls ``customer_support`` only if no
    tool shows the basket.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._row_of = {query.record.id: row for row, query in enumerate(queries)}
        adders = [query for query in queries if query.record.tools_extra]  # queries that add tools
        self._column_of = {query.record.id: column for column, query in enumerate(adders)}
        if not adders:
            return
        questions = unit_embeddings(encoder, [query.query for query in queries])
        added = [[tool_from_record(tool) for tool in query.record.tools_extra] for query in adders]
        adder_of_tool = np.repeat(np.arange(len(adders)), [*map(len, added)])
        added_tools = list(chain.from_iterable(added))
        tools = tool_embeddings(encoder, added_tools)
        names = np.array([tool.name for tool in added_tools])
        same_purpose = (tools @ tools.T >= SAME_TOOL_SIMILARITY) | (names[:, None] == names)
        adder_questions = questions[[self._row_of[query.record.id] for query in adders]]
        # (queries, adders): True if the query may need a tool of the adder.
        self._conflicts = questions @ adder_questions.T >= SAME_QUESTION_SIMILARITY
        self._have_similar_tools = np.zeros((len(adders), len(adders)), bool)
        for tool_index, adder in enumerate(adder_of_tool):
            self._conflicts[:, adder] |= questions @ tools[tool_index] >= NEEDED_TOOL_SIMILARITY
            self._have_similar_tools[adder, adder_of_tool[same_purpose[tool_index]]] = True

    def needs_no_tool_of(self, query: AnnotatedQuery, bases: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query needs none of the tools that the base queries add."""
        row = self._row_of[query.record.id]
        columns = (self._column_of.get(base.record.id) for base in bases)
        return all(column is None or not self._conflicts[row, column] for column in columns)

    def may_become_base(self, query: AnnotatedQuery, bases: Sequence[AnnotatedQuery]) -> bool:
        """Return True if a query that adds tools may become one of the base queries.

        The tools of two base queries must have different purposes, and a base query must not need
        the tools of another one.
        """
        column = self._column_of[query.record.id]
        return self.needs_no_tool_of(query, bases) and all(
            self.needs_no_tool_of(base, [query])
            and not self._have_similar_tools[column, self._column_of[base.record.id]]
            for base in bases
        )


#: Maximum number of queries that add tools to one toolbox. These queries share toolboxes, since
#: otherwise few prompts would list only the domain's tools.
MAX_BASES = 4


def vary_in_groups(
    queries: Sequence[AnnotatedQuery],
    variation: tevo.PromptVariation,
    encoder: Encoder,
    *,
    seed: int,
    copies: int,
) -> Iterator[tuple[int, list[tevo.VariedQuery], random.Random]]:
    """Yield each group: the copy's number, the queries with varied prompts, the random generator.

    A copy is a pass over all queries, with one prompt for each. The result depends on the seed and
    the queries, not on the queries' order. The encoder is used only if queries share toolboxes.
    """
    queues = _Queues(queries, variation, encoder)
    for copy in range(1, copies + 1):
        queues.shuffle(random.Random(f"{seed}:{copy}:toolboxes"))
        while bases := queues.take_base_queries():
            # The seed is one text: the hash of a tuple of texts differs between processes.
            rng = random.Random(f"{seed}:{bases[0].record.id}:{copy}")
            drawn = tevo.draw_toolbox(bases, variation, rng)
            group = [*bases, *queues.take_members(bases, drawn)]
            yield copy, tevo.vary_prompts(group, drawn, variation, rng), rng


class _Queues:
    """A copy's queries that have no toolbox yet: ``_adders`` add tools, ``_others`` do not."""

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

    def take_base_queries(self) -> list[AnnotatedQuery]:
        """Remove and return the base queries of the next toolbox; empty if no query is left."""
        base_limit = min(MAX_BASES, self._group_size)
        remaining = len(self._adders) + len(self._others)
        toolbox_count = max(1, math.ceil(remaining / self._group_size))
        # With this probability of taking adders, both queues become empty at about the same time.
        adder_probability = math.ceil(len(self._adders) / base_limit) / toolbox_count
        if not self._adders or (self._others and self._rng.random() >= adder_probability):
            return [self._others.popleft()] if self._others else []
        bases = [self._adders.popleft()]

        def may_join(query: AnnotatedQuery) -> bool:
            # A query that removes tools must be the only base query.
            removed = query.record.tools_removed or bases[0].record.tools_removed
            return not removed and self._added_tools.may_become_base(query, bases)

        _move_fitting(self._adders, bases, base_limit, may_join)
        return bases

    def take_members(
        self, bases: Sequence[AnnotatedQuery], drawn: tevo.DrawnToolbox
    ) -> list[AnnotatedQuery]:
        """Remove and return queries for the rest of a group; the toolbox suits their plans."""
        members: list[AnnotatedQuery] = []
        tools = set(drawn.toolbox.names)

        def fits(query: AnnotatedQuery) -> bool:
            id_, removed = query.record.id, self._removed_tools.get(query.record.id, ())
            can_run = self._called_tools[id_] <= tools and tools.isdisjoint(removed)
            return can_run and self._added_tools.needs_no_tool_of(query, bases)

        _move_fitting(self._others, members, self._group_size - len(bases), fits)
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
