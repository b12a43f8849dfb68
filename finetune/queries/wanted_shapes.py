"""Which plans new queries are wanted for: the shapes among annotated queries, and single tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.shape import shape
from casewright.tools import Toolbox

#: Annotated queries of a shape that are shown to the model.
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """One kind of plan.

    Attributes:
        shape: The plan's text with its literals open; empty where any plan with the tool is wanted.
        tool: The tool that the plan is to use; empty where its shape says all.
        examples: Queries of this kind as records: query, context, plan.
    """

    shape: str
    tool: str
    examples: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """How it is named in tables."""
        return self.shape.replace("\n", "; ") or f"any with {self.tool}"

    def fits(self, plan: Plan) -> bool:
        """Say whether a plan is of this kind."""
        return shape(plan) == self.shape if self.shape else self.tool in plan.tools


def wanted_shapes(
    queries: Iterable[AnnotatedQuery], toolbox: Toolbox, most: int | None = None
) -> list[Wanted]:
    """Return what to write queries for.

    Args:
        queries: Annotated ones; those with changes to the toolbox, or that it cannot run, are left
            out.
        toolbox: A tool of it that no annotated query uses is wanted by itself, with its own
            example where it has one.
        most: At most so many shapes, the most frequent first; tools do not count.
    """
    by_shape: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        changed = query.record.tools_extra or query.record.tools_removed
        if not changed and all(tool in toolbox for tool in query.plan.tools):
            by_shape[shape(query.plan)].append(query)
    # The sort is stable: of equally frequent ones, the first in the file comes first.
    shapes = sorted(by_shape.items(), key=lambda item: -len(item[1]))[:most]
    used = {tool for own in by_shape.values() for query in own for tool in query.plan.tools}
    wanted = [Wanted(form, "", _spread(own)) for form, own in shapes]
    for tool in toolbox:
        if tool.name not in used:
            shown: tuple[dict[str, Any], ...] = ()
            if tool.example is not None:
                shown = ({"query": tool.example.query, "context": {}, "plan": tool.example.plan},)
            wanted.append(Wanted("", tool.name, shown))
    return wanted


def _spread(queries: Sequence[AnnotatedQuery]) -> tuple[dict[str, Any], ...]:
    """Return examples from all over the list: neighbours in a file are often alike."""
    step = max(1, len(queries) // EXAMPLES)
    return tuple(
        {"query": query.query, "context": query.record.context, "plan": str(query.plan)}
        for query in queries[::step][:EXAMPLES]
    )
