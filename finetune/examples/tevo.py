"""Tool Evolve (TEvo): a query's planning prompt with other tools, names and words.

REAPER (Joshi et al. 2024, section on Tool Evolve): beside the tools that a plan needs stands a
random subset of the others; names and descriptions come from a pool; the examples are sampled. The
gold plan follows the renaming, and stays valid for the prompt that it is the answer to.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pydantic import Field

from casewright.errors import PlanError
from casewright.finetune.section import Section
from casewright.finetune.shots import NEAREST, Neighbours, plain
from casewright.finetune.tool_pools import ToolPool, key_of, named_tools
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, parse_plan
from casewright.planner.plan import ListValue, Scalar, Step, StepRef, Value
from casewright.planner.prompt import PlanExample
from casewright.tools import NO_EVIDENCE, Toolbox, ToolExample, ToolSpec, tool_from_record


class TevoSettings(Section):
    """Variation of prompts from the one that serving renders; each share is a probability.

    Attributes:
        enabled: Whether anything but the plan cases in the tail varies.
        unchanged: Of a prompt, to keep the toolbox that serving shows.
        drop_tools: Of a changed prompt, to show a random subset of the tools that it does not need.
        rename_tools: Of a tool, to be renamed.
        rename_parameters: Of a parameter, to be renamed.
        rename_results: Of a result field, to be renamed wherever it is returned.
        reword: Of a description, to be one of the pool's.
        examples: Of a tool's fixed example, to be a sampled query of that tool alone.
        no_example: Of a tool, to be shown without an example.
        distractors: At most how many tools of other domains are added, where there are any.
        shots: At most how many plan cases the tail shows; how many is drawn.
        random_shots: Of a plan case, to be any other query's, and none of those most alike.
        queries_per_toolbox: At most how many queries are posed under one drawn toolbox, so that
            their prompts have one head, which a training computes once.
    """

    enabled: bool = True
    unchanged: float = Field(default=0.2, ge=0, le=1)
    drop_tools: float = Field(default=0.7, ge=0, le=1)
    rename_tools: float = Field(default=0.5, ge=0, le=1)
    rename_parameters: float = Field(default=0.3, ge=0, le=1)
    rename_results: float = Field(default=0.3, ge=0, le=1)
    reword: float = Field(default=0.5, ge=0, le=1)
    examples: float = Field(default=0.5, ge=0, le=1)
    no_example: float = Field(default=0.1, ge=0, le=1)
    distractors: int = Field(default=0, ge=0)
    shots: int = Field(default=4, ge=0, le=NEAREST)
    random_shots: float = Field(default=0.25, ge=0, le=1)
    queries_per_toolbox: int = Field(default=1, ge=1, le=256)


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The drawn names of a tool, its parameters and result fields, by their own names."""

    tool: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renaming:
    """The drawn names of tools, by their own names; the others keep their names.

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
    """The probability that a tool, parameter or field with a pool is renamed."""

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
    results = {}
    for parameter in tool.parameters:
        own = pool.parameters.get(parameter.name)
        if own and rng.random() < share and (name := _draw(own.names, taken, rng)):
            results[parameter.name] = name
            taken.add(key_of(name))
    return results


def _draw_results(
    tools: Sequence[ToolSpec], pools: Mapping[str, ToolPool], share: float, rng: random.Random
) -> dict[str, dict[str, str]]:
    """Return other names by tool and field."""
    results: dict[str, dict[str, str]] = {tool.name: {} for tool in tools}
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
                    results[tool_name][own] = name
                    taken[tool_name].add(key_of(name))
    return results


def _draw(names: Sequence[str], taken: Collection[str], rng: random.Random) -> str:
    """Draw a name that nothing has yet; nothing where there is none."""
    free = [name for name in names if key_of(name) not in taken]
    return rng.choice(free) if free else ""


@dataclass(frozen=True, slots=True)
class DrawnToolbox:
    """Tools that were drawn, before their words and examples are.

    Attributes:
        own: The tools under their own names, in the order in which they are shown.
        changed: Whether anything may differ from what serving shows.
    """

    own: Toolbox
    names: Renaming
    changed: bool


def draw_toolbox(
    founders: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    settings: TevoSettings,
    pools: Mapping[str, ToolPool],
    rng: random.Random,
    *,
    distractors: Sequence[ToolSpec] = (),
) -> DrawnToolbox:
    """Draw the tools for the queries that found a toolbox, mostly one.

    Args:
        founders: The first one's record may change the toolbox in any way, the others' may add
            tools; all that their plans need is drawn.
        pools: Other names by tool; a tool without one keeps its own.

    Raises:
        InputError: A record's request is unusable; see ``QueryRecord.request``.
        ToolError: Two founders add different tools of one name.
    """
    asked = founders[0].record.request(toolbox).toolbox
    for other in founders[1:]:
        added = map(tool_from_record, other.record.tools_extra)
        asked = asked.with_(*(t for t in added if t.name not in asked or asked[t.name] != t))
    if not settings.enabled or rng.random() < settings.unchanged:
        return DrawnToolbox(asked, Renaming(), changed=False)
    tools = _subset({name for query in founders for name in query.plan.tools}, asked, settings, rng)
    free = [t for t in distractors if t.name not in toolbox and t.name not in asked]
    tools += rng.sample(free, rng.randint(0, min(settings.distractors, len(free))))
    rng.shuffle(tools)
    # Where serving has it, unless it is told otherwise.
    tools.append(asked[NO_EVIDENCE.name])
    shares = RenameShares(
        settings.rename_tools, settings.rename_parameters, settings.rename_results
    )
    # A name that another tool's description says cannot change there.
    named = {name for tool in tools for name in _named(tool, asked.names)}
    names = draw_renaming(tools, pools, shares, rng, fixed=sorted(named))
    return DrawnToolbox(Toolbox(tools), names, changed=True)


def _subset(
    called: Collection[str], toolbox: Toolbox, settings: TevoSettings, rng: random.Random
) -> list[ToolSpec]:
    """Return the tools that plans call, and a random subset of the others."""
    needed = {*called, NO_EVIDENCE.name}
    others = [name for name in toolbox.names if name not in needed]
    if rng.random() < settings.drop_tools:
        others = rng.sample(others, rng.randint(0, len(others)))
    kept = {*needed, *others}
    # A tool that another's description names comes with it.
    while (
        missing := {
            name
            for tool in kept
            if tool in toolbox
            for name in _named(toolbox[tool], toolbox.names)
        }
        - kept
    ):
        kept |= missing
    return [tool for tool in toolbox if tool.name in kept and tool.name != NO_EVIDENCE.name]


def _named(tool: ToolSpec, names: Sequence[str]) -> list[str]:
    texts = [tool.description, *(parameter.description for parameter in tool.parameters)]
    others = [name for name in names if name != tool.name]
    return [name for text in texts if text for name in named_tools(text, others)]


@dataclass(frozen=True, slots=True)
class Evolved:
    """A query with the prompt that was drawn for it.

    Attributes:
        shots: Plan cases for the prompt's tail, under the same names.
    """

    query: AnnotatedQuery
    request: PlanRequest
    plan: Plan
    shots: tuple[ToolExample, ...] = ()


def pose(
    queries: Sequence[AnnotatedQuery],
    drawn: DrawnToolbox,
    settings: TevoSettings,
    pools: Mapping[str, ToolPool],
    neighbours: Neighbours | None,
    rng: random.Random,
) -> list[Evolved]:
    """Pose queries under one drawn toolbox: their requests share it, and their prompts a head.

    Args:
        queries: Their plans call tools of that toolbox alone.
        drawn: The toolbox, in which words and examples are drawn here.
        neighbours: Where plan cases and examples come from; none are drawn without. No example
            has a question of these queries or of their plan cases.

    Raises:
        InputError: A question or a context is unusable.
    """
    requests = [PlanRequest(query.query, drawn.own, query.record.context) for query in queries]
    shots: list[list[AnnotatedQuery]] = [[] for _ in queries]
    if neighbours is not None and settings.shots:
        shots = [
            neighbours.shots(request, rng.randint(0, settings.shots), settings.random_shots, rng)
            for request in requests
        ]
    asked = {plain(query.query) for query in queries}
    avoid = asked | {plain(case.query) for cases in shots for case in cases}
    evolved = []
    for tool in drawn.own:
        spec = drawn.names.spec(tool)
        example = _own_example(tool, asked, drawn.own)
        if drawn.changed:
            spec = _reworded(spec, tool, pools.get(tool.name), settings.reword, rng)
            example = _drawn_example(tool, example, drawn.own, settings, neighbours, avoid, rng)
        evolved.append(replace(spec, example=_under(drawn.names, example)))
    toolbox = Toolbox(evolved)
    return [
        Evolved(
            query,
            replace(request, toolbox=toolbox),
            drawn.names.plan(query.plan),
            tuple(_shot(case, drawn.names) for case in cases),
        )
        for query, request, cases in zip(queries, requests, shots, strict=True)
    ]


def _shot(case: AnnotatedQuery, names: Renaming) -> PlanExample:
    """Return a query as a plan case, as serving shows it."""
    known = sorted(name for name, value in case.record.context.items() if value is not None)
    return PlanExample(case.query, str(names.plan(case.plan)), context=tuple(known))


def _reworded(
    spec: ToolSpec, tool: ToolSpec, pool: ToolPool | None, share: float, rng: random.Random
) -> ToolSpec:
    """Return a renamed tool, some of its descriptions drawn from the pool of its own names."""
    if pool is None:
        return spec

    def drawn(own: str, others: Sequence[str]) -> str:
        return rng.choice(others) if rng.random() < share and others else own

    parameters = []
    for renamed, parameter in zip(spec.parameters, tool.parameters, strict=True):
        known = pool.parameters.get(parameter.name)
        text = drawn(parameter.description, known.descriptions if known else ())
        reworded = text != parameter.description
        parameters.append(replace(renamed, description=text) if reworded else renamed)
    text = drawn(tool.description, pool.descriptions)
    return replace(spec, description=text, parameters=tuple(parameters))


def _own_example(tool: ToolSpec, asked: Container[str], shown: Toolbox) -> tuple[str, Plan] | None:
    if tool.example is None or plain(tool.example.query) in asked:
        return None
    plan = _parsed(tool.example.plan)
    if plan is None or any(name not in shown for name in plan.tools):
        return None
    return tool.example.query, plan


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Plan | None:
    """Parse an example's plan, which is its declarer's own text: none where it is no plan."""
    try:
        return parse_plan(text)
    except PlanError:
        return None


def _drawn_example(
    tool: ToolSpec,
    own: tuple[str, Plan] | None,
    shown: Toolbox,
    settings: TevoSettings,
    neighbours: Neighbours | None,
    avoid: Container[str],
    rng: random.Random,
) -> tuple[str, Plan] | None:
    """Return the question and plan to show with a tool, under its own names, or none."""
    if rng.random() < settings.no_example:
        return None
    if neighbours is not None and (own is None or rng.random() < settings.examples):
        result = neighbours.example(tool.name, shown, avoid, rng)
        if result is not None:
            return result.query, result.plan
    return own


def _under(names: Renaming, example: tuple[str, Plan] | None) -> ToolExample | None:
    return None if example is None else ToolExample(example[0], str(names.plan(example[1])))
