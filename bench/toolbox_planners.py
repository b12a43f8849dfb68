"""Planners for benchmarks with many toolboxes; each toolbox has its own plan cases."""

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

#: The name of the control that returns a fallback plan for each request.
FALLBACK = "fallback plan"
#: Seconds until a model's call times out; no call takes so long, even on a slow machine.
MAX_SECONDS = 600.0
#: Maximum number of requests, all of one toolbox, in a model's batch.
BATCH_SIZE = 8
#: A function from a store of plan cases to a planner.
PlannerFactory = Callable[[CaseStore], Planner]


class ToolboxPlanner:
    """A planner that delegates each request to a planner with the toolbox's plan cases.

    ``stores`` has the plan cases by the toolbox's fingerprint. A toolbox that is not in ``stores``
    uses ``default``. Only the planner of the latest toolbox is kept, so requests should be sorted
    by toolbox. ``cpu_ms`` has the CPU milliseconds, over all cores, of each call of ``plan``.
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
        self._latest_key = ""
        self._latest_planner = planner = factory(default)
        self.cpu_ms: list[float] = []
        self.batch = planner.batch if isinstance(planner, BatchPlanner) else 1

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan by the planner that has the plan cases of the request's toolbox."""
        planner, started = self._planner_for(self._key_of(request)), process_time()
        result = planner.plan(request)
        self.cpu_ms.append((process_time() - started) * 1000)
        return result

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        return await self._planner_for(self._key_of(request)).aplan(request)

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return the requests' plans in order; adjacent requests with one toolbox are one batch."""
        results: list[PlanResult] = []
        for key, group in groupby(requests, self._key_of):
            planner = self._planner_for(key)
            if isinstance(planner, BatchPlanner):
                results += planner.plan_many(list(group))
            else:
                results += map(self.plan, group)
        return results

    def _key_of(self, request: PlanRequest) -> str:
        """Return the fingerprint of the request's toolbox, or "" if it has no plan cases."""
        key = request.toolbox.fingerprint()
        return key if key in self._stores else ""

    def _planner_for(self, key: str) -> Planner:
        if key != self._latest_key:
            self._latest_planner = self._factory(self._stores.get(key, self._default))
            self._latest_key = key
        return self._latest_planner


def planner_factory(name: str, settings: named.ModelSettings) -> PlannerFactory:
    """Return a function from a store of plan cases to a planner; a model is loaded only once.

    ``settings`` apply to a language model. By default, a model that Casewright trained gets as many
    plan cases in its prompt as in its training. Raise ``InputError`` if the planner or model does
    not exist, or the planner calls tools.
    """
    if name == FALLBACK:
        return lambda store: FallbackPlanner()
    named.check_planner(name)
    if name.startswith(named.AGENT):
        raise InputError(
            f"{name!r} calls tools while it plans, and these cannot be called. Leave this planner "
            "out."
        )
    if not named.has_whole_plan_model(name):
        # Planners without a colon in their names take no number of examples.
        example_settings = named.ModelSettings(examples=settings.examples if ":" in name else None)
        return lambda store: named.make_planner(name, store, settings=example_settings)
    model = named.local_model(name, settings)
    examples = example_count(name) if settings.examples is None else settings.examples
    options = {"examples": examples, "batch": BATCH_SIZE}
    return lambda store: model_planner(model, store, fallback=CasePlanner(store), **options)


def model_planner(model: LanguageModel, store: CaseStore, **options: Any) -> ModelPlanner:
    """Return a ``ModelPlanner`` with these plan cases and options, and a long time limit."""
    return ModelPlanner(model, plan_cases=store, seconds=MAX_SECONDS, **options)


def names_with_controls(names: Sequence[str], *, with_base_model: bool) -> list[str]:
    """Return the planners' and the controls' names; ``InputError`` if a name is repeated."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The planner {repeated[0]!r} is given twice. Give each --planner once.")
    controls = [named.PARSER, *([SMOLLM2] if with_base_model else []), FALLBACK]
    return list(dict.fromkeys([*names, *controls]))
