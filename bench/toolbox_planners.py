"""Planners for benchmarks with many toolboxes, which each have their own plan cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from time import process_time
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner import CasePlanner, ModelPlanner, Planner, PlanRequest, PlanResult, named
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.planner.named_planners import example_count
from casewright.planner.request import BatchPlanner
from casewright.stores import CaseStore

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

FALLBACK = "fallback plan"
#: Seconds until a model's call times out; no call takes so long, even on a slow machine.
MAX_SECONDS = 600.0
#: Number of messages of a toolbox that a model decodes in one batch.
BATCH_SIZE = 8
#: A function from a store of plan cases to a planner.
PlannerFactory = Callable[[CaseStore], Planner]


class ToolboxPlanner:
    """A planner that delegates each request to a planner with the toolbox's plan cases.

    ``stores`` has the plan cases by the toolbox's fingerprint; other toolboxes use ``default``.
    Only the planner of the latest toolbox is cached, so requests should be sorted by toolbox.
    ``cpu_ms`` has the CPU milliseconds, over all cores, of each plan that is not in a batch.
    """

    def __init__(
        self,
        name: str,
        factory: PlannerFactory,
        stores: Mapping[str, CaseStore],
        default: CaseStore,
    ) -> None:
        self.name = name
        self._factory, self._stores, self._default = factory, stores, default
        self._key = ""
        self._planner = factory(default)
        self.cpu_ms: list[float] = []
        self.batch = self._planner.batch if isinstance(self._planner, BatchPlanner) else 1

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan by the planner of the request's toolbox."""
        planner, started = self._planner_for(self._key_of(request)), process_time()
        result = planner.plan(request)
        self.cpu_ms.append((process_time() - started) * 1000)
        return result

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the plan of ``plan`` without blocking the event loop."""
        return await self._planner_for(self._key_of(request)).aplan(request)

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a plan for each request, in order; each toolbox's requests are one batch."""
        results: list[PlanResult] = []
        for key, group in groupby(requests, self._key_of):
            planner, batch = self._planner_for(key), list(group)
            if isinstance(planner, BatchPlanner):
                results += planner.plan_many(batch)
            else:
                results += map(self.plan, batch)
        return results

    def _key_of(self, request: PlanRequest) -> str:
        """Return the fingerprint of a toolbox with plan cases; "" for other toolboxes."""
        key = request.toolbox.fingerprint()
        return key if key in self._stores else ""

    def _planner_for(self, key: str) -> Planner:
        if key != self._key:
            self._planner = self._factory(self._stores.get(key, self._default))
            self._key = key
        return self._planner


def planner_factory(name: str, settings: named.ModelSettings) -> PlannerFactory:
    """Return a function from a store of plan cases to a planner; its model is loaded once.

    ``settings`` apply to a language model. By default, a model that Casewright trained gets as many
    plan cases in its prompt as in its training. Raise ``InputError`` if the planner or model does
    not exist, or the planner calls tools.
    """
    if name == FALLBACK:
        return lambda store: FallbackPlanner()
    named.check_planner(name)
    if name.startswith(named.AGENT):
        raise InputError(
            f"{name!r} calls the tools that it plans with, and these cannot be called. Leave it "
            "out."
        )
    if not named.has_whole_plan_model(name):
        example_settings = named.ModelSettings(examples=settings.examples if ":" in name else None)
        return lambda store: named.make_planner(name, store, settings=example_settings)
    model = named.local_model(name, settings)
    examples = example_count(name) if settings.examples is None else settings.examples
    options = {"examples": examples, "batch": BATCH_SIZE}
    return lambda store: model_planner(model, store, fallback=CasePlanner(store), **options)


def model_planner(model: LanguageModel, store: CaseStore, **options: Any) -> ModelPlanner:
    """Return a ``ModelPlanner`` with these plan cases and options, and a long time limit."""
    return ModelPlanner(model, plan_cases=store, seconds=MAX_SECONDS, **options)


def names_with_controls(names: Sequence[str], *, base: bool) -> list[str]:
    """Return the names, and the controls' names; ``InputError`` if a name is repeated."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The planner {repeated[0]!r} is given twice. Give each --planner once.")
    controls = [named.PARSER, *([SMOLLM2] if base else []), FALLBACK]
    return list(dict.fromkeys([*names, *controls]))
