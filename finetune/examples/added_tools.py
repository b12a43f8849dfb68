"""Which queries may share a toolbox with tools that a record added: none that may want them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright.finetune.examples.shots import units
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import tool_from_record

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
        """Say whether a query wants none of the tools that the founders of a toolbox add."""
        row = self._rows[query.record.id]
        columns = (self._columns.get(founder.record.id) for founder in founders)
        return all(column is None or not self._wants[row, column] for column in columns)

    def may_join(self, query: AnnotatedQuery, founders: Sequence[AnnotatedQuery]) -> bool:
        """Say whether a query that adds tools may found a toolbox together with others that do.

        Their tools must be for other things, and no question may want the others' tools.
        """
        own = self._columns[query.record.id]
        return self.may_see(query, founders) and all(
            self.may_see(founder, [query])
            and not self._alike[own, self._columns[founder.record.id]]
            for founder in founders
        )
