"""Which tools a question's plan probably calls, by plan cases alone.

A network of some million weights, trained on a few thousand questions, has not read enough to know
which of two questions means what; the encoder has. So its choice of tools may lean on a linear
model of the plan cases' embeddings, by shallow fusion (see ``decoding.fusion``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from casewright.planner.known_plans import KnownPlans
from casewright.planner.plan_cases import runnable
from casewright.planner.request import PlanRequest
from casewright.stores import CaseStore

#: Squared distance in which a shape's share falls to 1/e.
SCALE = 0.2
#: Cosine in which an unknown tool's share does, beside that of the nearest plan case; and how much
#: larger than the elected shape's its logarithm may be.
LIKENESS_SCALE, MOST_LOG = 0.05, 3.0


class ToolPrior:
    """Shares of the sequences of tools that a plan may have.

    Args:
        store: Plan cases; see ``plan_store``. Read once, when the prior is made.
    """

    def __init__(self, store: CaseStore) -> None:
        self._known = KnownPlans(store)

    def shares(self, request: PlanRequest) -> Mapping[tuple[str, ...], float]:
        """Return sequences of tools, each with its share; together 1, or nothing.

        A shape of the plan cases counts by how near it is to what their linear model predicts. A
        tool that no plan case calls is known by its description and its example alone: it counts
        as much as the elected shape where these are as near as the nearest plan case.
        """
        known = self._known
        asked = known.vector(request)
        shapes = known.shapes.ranked(
            request.question,
            asked,
            known.has_page(request),
            lambda plan: runnable(plan, request),
        )
        found: dict[tuple[str, ...], float] = defaultdict(float)
        for shape, far in shapes:
            found[tuple(shape.plan.tools)] += math.exp((shapes[0][1] - far) / SCALE)
        most = max(found.values(), default=1.0)
        nearest = float((known.vectors @ asked).max()) if shapes else 1.0
        for tool in known.unknown_tools(request, asked):
            tools = (tool.name,) if tool.plan is None else tuple(tool.plan.tools)
            ahead = (tool.likeness - nearest) / LIKENESS_SCALE
            found[tools] += most * math.exp(min(ahead, MOST_LOG))
        total = math.fsum(found.values())
        return {tools: share / total for tools, share in found.items()}
