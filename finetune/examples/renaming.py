"""Other names for the tools, parameters and result fields of a toolbox, and plans under them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from casewright.finetune.tool_pools import ToolPool, key_of
from casewright.planner.plan import ListValue, Plan, Scalar, Step, StepRef, Value
from casewright.tools import NO_EVIDENCE, ToolSpec


@dataclass(frozen=True, slots=True)
class ToolNames:
    """What one tool is called, and its parameters and result fields by their own names."""

    tool: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renaming:
    """What tools are called, by their own names; what it does not name keeps its name.

    References are data: a plan is renamed as the typed value that it is, so that words of the user
    which look like a name stay what they are.
    """

    tools: Mapping[str, ToolNames] = field(default_factory=dict)

    def plan(self, plan: Plan) -> Plan:
        """Return the plan under the new names."""
        return Plan(tuple(self._step(step, plan.tools) for step in plan.steps))

    def spec(self, tool: ToolSpec) -> ToolSpec:
        """Return the tool under its new names, to plan with: its example is left out.

        A renamed parameter keeps its sources, choices and type, also those that it had by its name.
        """
        names = self._names(tool.name)
        return ToolSpec(
            name=names.tool,
            description=tool.description,
            parameters=tuple(
                replace(parameter, name=names.parameters.get(parameter.name, parameter.name))
                for parameter in tool.parameters
            ),
            results=tuple(names.results.get(result, result) for result in tool.results),
        )

    def _names(self, tool: str) -> ToolNames:
        return self.tools.get(tool) or ToolNames(tool)

    def _step(self, step: Step, tools: Sequence[str]) -> Step:
        names = self._names(step.tool)

        def scalar(value: Scalar) -> Scalar:
            # A reference past the plan's end, which no valid plan has, names a field of no tool.
            if isinstance(value, StepRef) and 1 <= value.step <= len(tools):
                results = self._names(tools[value.step - 1]).results
                return replace(value, field=results.get(value.field, value.field))
            return value

        def renamed(value: Value) -> Value:
            if isinstance(value, ListValue):
                return ListValue(tuple(map(scalar, value.items)))
            return scalar(value)

        arguments = (
            (names.parameters.get(name, name), renamed(value)) for name, value in step.arguments
        )
        return Step(names.tool, tuple(arguments))


@dataclass(frozen=True, slots=True)
class RenameShares:
    """How often what has a pool is renamed: the probability for each tool, parameter and field."""

    tools: float
    parameters: float
    results: float


def draw_renaming(
    tools: Iterable[ToolSpec],
    pools: Mapping[str, ToolPool],
    shares: RenameShares,
    rng: random.Random,
    *,
    fixed: Iterable[str] = (),
) -> Renaming:
    """Draw new names for tools that are shown together; no two things in one place share a name.

    A field that several tools return is called the same by all of them, where their pools agree:
    what one step finds by that name another takes.

    Args:
        tools: In their order, which what is drawn depends on.
        pools: By the tools' own names; a tool without one keeps all its names.
        fixed: Tools whose names stay, beside ``no_evidence``.
    """
    shown = list(tools)
    stay = {*fixed, NO_EVIDENCE.name}
    taken = {key_of(tool.name) for tool in shown}
    results = _draw_results(shown, pools, shares.results, rng)
    drawn: dict[str, ToolNames] = {}
    for tool in shown:
        if (pool := pools.get(tool.name)) is None:
            continue
        name = tool.name
        if tool.name not in stay and rng.random() < shares.tools:
            name = _draw(pool.names, taken, rng) or tool.name
            taken.add(key_of(name))
        parameters = _draw_parameters(tool, pool, shares.parameters, rng)
        drawn[tool.name] = ToolNames(name, parameters, results[tool.name])
    return Renaming(drawn)


def _draw_parameters(
    tool: ToolSpec, pool: ToolPool, share: float, rng: random.Random
) -> dict[str, str]:
    taken = {key_of(parameter.name) for parameter in tool.parameters}
    found = {}
    for parameter in tool.parameters:
        own = pool.parameters.get(parameter.name)
        if own and rng.random() < share and (name := _draw(own.names, taken, rng)):
            found[parameter.name] = name
            taken.add(key_of(name))
    return found


def _draw_results(
    tools: Sequence[ToolSpec], pools: Mapping[str, ToolPool], share: float, rng: random.Random
) -> dict[str, dict[str, str]]:
    """Return other names by tool and field."""
    found: dict[str, dict[str, str]] = {tool.name: {} for tool in tools}
    taken = {tool.name: set(map(key_of, tool.results)) for tool in tools}
    for own in dict.fromkeys(result for tool in tools for result in tool.results):
        offers = {
            tool.name: pools[tool.name].results[own]
            for tool in tools
            if own in tool.results and tool.name in pools and own in pools[tool.name].results
        }
        if not offers or rng.random() >= share:
            continue
        first = next(iter(offers.values()))
        common = tuple(name for name in first if all(name in offer for offer in offers.values()))
        groups = [(list(offers), common)] if common else [([t], o) for t, o in offers.items()]
        for group, names in groups:
            if name := _draw(names, set().union(*(taken[tool] for tool in group)), rng):
                for tool_name in group:
                    found[tool_name][own] = name
                    taken[tool_name].add(key_of(name))
    return found


def _draw(names: Sequence[str], taken: Collection[str], rng: random.Random) -> str:
    """Draw a name that nothing has yet; nothing where there is none."""
    free = [name for name in names if key_of(name) not in taken]
    return rng.choice(free) if free else ""
