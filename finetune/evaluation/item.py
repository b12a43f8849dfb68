"""Evaluation items (annotated queries with their requests), and a control with shuffled plans."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from casewright.errors import InputError, PlanError
from casewright.finetune.plan_shape import plan_class
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, PlanResult
from casewright.tools import Toolbox, alias


@dataclass(frozen=True, slots=True)
class EvaluationItem:
    """An annotated query with the gold plan, and the request that planners get."""

    query: AnnotatedQuery
    request: PlanRequest

    @property
    def new_tools(self) -> frozenset[str]:
        """The gold plan's tools that only the query's record adds to the toolbox."""
        added = {alias(str(tool.get("name", ""))) for tool in self.query.record.tools_extra}
        return frozenset(added & set(self.query.plan.tools))

    def without(self, tool: str) -> EvaluationItem:
        """Return the item with a toolbox that lacks a tool."""
        request = replace(self.request, toolbox=self.request.toolbox.without(tool))
        return EvaluationItem(self.query, request)


def items_of(queries: Iterable[AnnotatedQuery], toolbox: Toolbox) -> list[EvaluationItem]:
    """Return an item for each query; the query's record may change the toolbox of the request.

    A query without a label gets its gold plan's class as the label. ``InputError`` if a question, a
    context or tools are invalid, or a gold plan is invalid for the request.
    """
    items = []
    for number, query in enumerate(queries, 1):
        try:
            request = query.record.request(toolbox)
            request.validate(query.plan)
        except (InputError, PlanError) as error:
            part = ", its gold plan" if isinstance(error, PlanError) else ""
            id_ = "" if query.record.id is None else f" (id {query.record.id})"
            raise InputError(f"Query {number}{id_}{part}: {error}") from error
        labelled = query if query.label else replace(query, label=plan_class(query.plan))
        items.append(EvaluationItem(labelled, request))
    return items


class ShuffledPlans:
    """A control: a planner that answers each question with the gold plan of a random item."""

    name = "shuffled"

    def __init__(self, items: Sequence[EvaluationItem], seed: int = 0) -> None:
        plans = [item.query.plan for item in items]
        random.Random(seed).shuffle(plans)
        keys = [_key(item.request) for item in items]
        self._plans: dict[str, Plan] = dict(zip(keys, plans, strict=True))

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan that was drawn for a question."""
        return PlanResult(self._plans[_key(request)], self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the plan that was drawn for a question."""
        return self.plan(request)


def _key(request: PlanRequest) -> str:
    return json.dumps([request.question, dict(request.context)], sort_keys=True)
