"""Plan cases read into memory, to learn from all of them at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan
from casewright.planner.plan_cases import runnable
from casewright.planner.request import PlanRequest
from casewright.planner.shape import context_fields
from casewright.planner.shape_model import ShapeModel
from casewright.stores import CaseStore


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A tool that no plan case calls.

    Attributes:
        name: The tool's.
        likeness: Cosine of the question and its description or its example, whichever is nearer.
        question: Its example's; empty without one that can be run here.
        plan: Its example's.
    """

    name: str
    likeness: float
    question: str = ""
    plan: Plan | None = None


class KnownPlans:
    """The plan cases of a store, and the shapes that a linear model elects by them.

    Args:
        store: Plan cases; see ``plan_store``. Read once.

    Attributes:
        questions: Of the cases.
        plans: Of the cases, in the same order.
        vectors: The questions' embeddings, array (n, d).
        shapes: Elects a plan's shape.
    """

    def __init__(self, store: CaseStore) -> None:
        # A follow-up's question does not say by itself what its plan looks up.
        cases = [case for case in store.all() if "history" not in case.metadata]
        self.questions = [str(case.problem["question"]) for case in cases]
        self.plans = [parse_plan(str(case.solution)) for case in cases]
        self._facet = store.schema.facets[0]
        self.vectors = self._facet.vectors([case.problem for case in cases])
        # What a plan took from the context once says what the page is about: a product, say.
        self._context_fields = {field for plan in self.plans for field in context_fields(plan)}
        pages = [not self._context_fields.isdisjoint(c.metadata.get("context", ())) for c in cases]
        self.shapes = ShapeModel(self.questions, self.vectors, pages, self.plans)
        self._tools = {tool for plan in self.plans for tool in plan.tools}

    def vector(self, request: PlanRequest) -> NDArray[np.float32]:
        """Return the question's embedding, array (d,)."""
        found: NDArray[np.float32] = self._facet.vectors(
            [{"question": request.question}], query=True
        )[0]
        return found

    def has_context(self, request: PlanRequest) -> bool:
        """Say whether the request's context has a field that plans refer to."""
        return any(request.context.get(field) is not None for field in self._context_fields)

    def unknown_tools(self, request: PlanRequest, vector: NDArray[np.float32]) -> list[UnknownTool]:
        """Return the request's tools that no plan case calls."""
        new = [tool for tool in request.toolbox if tool.name not in self._tools]
        if not new:
            return []
        texts = [{"question": tool.description} for tool in new]
        texts += [{"question": tool.example.query} for tool in new if tool.example is not None]
        likeness = (self._facet.vectors(texts) @ vector).tolist()
        of_examples = iter(likeness[len(new) :])
        found = []
        for tool, near in zip(new, likeness, strict=False):
            if tool.example is None:
                found.append(UnknownTool(tool.name, near))
                continue
            near = max(near, next(of_examples))
            plan = None
            with suppress(PlanError):
                plan = parse_plan(tool.example.plan)
            if plan is None or not runnable(plan, request):
                found.append(UnknownTool(tool.name, near))
            else:
                found.append(UnknownTool(tool.name, near, tool.example.query, plan))
        return found
