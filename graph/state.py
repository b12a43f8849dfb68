"""The state of a run: JSON-plain, so that every checkpointer keeps it without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from casewright.graph.limits import Limits
from casewright.planner import Planner
from casewright.planner.request import Turn
from casewright.tools import Toolbox


class AskInput(TypedDict, total=False):
    """What a run is given.

    ``question`` is required; ``context`` is a JSON object; ``history`` the earlier turns.
    """

    question: str
    context: dict[str, Any]
    history: list[Turn]


class AskOutput(TypedDict, total=False):
    """What a run returns: ``answer`` is the JSON form of ``Answer``."""

    answer: dict[str, Any]


class RunState(AskInput, AskOutput, total=False):
    """Everything that is kept of a run.

    ``run_id`` names the run across resumptions. ``plan`` is the plan's text form; ``planning`` says
    who wrote it and how. ``outcomes`` holds one JSON-plain ``Outcome`` a step.
    """

    run_id: str
    plan: str
    planning: dict[str, Any]
    outcomes: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the caller decides for one run, given as LangGraph's ``context``; never checkpointed.

    A resumed run is given it again.

    Attributes:
        scope: Who asks: customer, tenant, …. Tools read it, no plan can write it.
        toolbox: Another toolbox than the graph's.
        planner: Another planner than the graph's.
        limits: Budgets of this run; see ``Limits.within``: they lower the graph's, never raise
            them.
        tenant: Whose cases this run is about. Tools find it in their scope as ``tenant``; stores
            whose tool is ``per_tenant`` are opened for it.
    """

    scope: Mapping[str, str] = field(default_factory=dict)
    toolbox: Toolbox | None = None
    planner: Planner | None = None
    limits: Limits | Mapping[str, float] | None = None
    tenant: str | None = None
