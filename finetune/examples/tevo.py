"""Tool Evolve (TEvo): random variations of the tools in a query's planning prompt.

As in REAPER (Joshi et al. 2024, section on Tool Evolve), a prompt lists the needed tools and a
random subset of the other tools. Names and descriptions are drawn from pools, and examples from
other queries. The gold plan is valid for the prompt, since it uses the names in the prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random

from pydantic import Field

from casewright.errors import PlanError
from casewright.finetune.neighbours import MAX_NEIGHBOURS, Neighbours, present_fields, question_key
from casewright.finetune.section import Section
from casewright.finetune.tool_pools import ToolPool, key_of, named_tools
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, parse_plan
from casewright.planner.plan import Scalar, Step, StepRef
from casewright.planner.prompt import PlanExample
from casewright.tools import NO_EVIDENCE, Toolbox, ToolExample, ToolSpec, tool_from_record


class TevoSettings(Section):
    """The random variation of the planner's prompt; each share is a probability.

    Attributes:
        enabled: If false, only the plan cases vary.
        unchanged: Share of prompts with the toolbox as in serving.
        drop_tools: Share of changed prompts that have only a random subset of the unneeded tools.
        rename_tools: Share of tools with another name.
        rename_parameters: Share of parameters with another name.
        rename_results: Share of result fields with another name, if possible the same in all tools.
        reword: Share of descriptions that are replaced by others from the pool.
        examples: Share of tools whose example is a sampled query instead of the tool's own example.
        no_example: Share of tools without an example.
        distractors: Maximum number of added tools that no plan needs.
        shots: Maximum number (0 to 64) of plan cases; each prompt has a random number.
        random_shots: Share of plan cases that are random queries instead of similar ones.
        queries_per_toolbox: Maximum number of queries that share one toolbox. Their prompts share
            the head (role and tools), which a training with ``shared_heads`` computes only once.
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
    shots: int = Field(default=4, ge=0, le=MAX_NEIGHBOURS)
    random_shots: float = Field(default=0.25, ge=0, le=1)
    queries_per_toolbox: int = Field(default=1, ge=1, le=256)

    @property
    def samples_queries(self) -> bool:
        """True if prompts show other queries, as plan cases or as tools' examples."""
        return bool(self.shots or (self.enabled and self.examples))


@dataclass(frozen=True, slots=True)
class PromptVariation:
    """The settings and inputs of varied prompts; ``distractors`` are tools that no plan needs."""

    toolbox: Toolbox
    settings: TevoSettings
    pools: Mapping[str, ToolPool] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    distractors: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The new name of a tool; the new names of parameters and of results, by their old names."""

    new_name: str
    new_parameters: Mapping[str, str] = field(default_factory=dict)
    new_results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renaming:
    """The new names of tools by their old names; other tools keep their names."""

    names_by_tool: Mapping[str, ToolNames] = field(default_factory=dict)

    def rename_plan(self, plan: Plan) -> Plan:
        """Return the plan with the new names; literals do not change."""
        return Plan(tuple(self._rename_step(step, plan.tools) for step in plan.steps))

    def rename_tool(self, tool: ToolSpec) -> ToolSpec:
        """Return the tool with the new names and without its example.

        A parameter keeps its sources, choices and type, even if its old name implied these.
        """
        names = self._names_of(tool.name)
        new_names = names.new_parameters
        parameters = tuple(replace(p, name=new_names.get(p.name, p.name)) for p in tool.parameters)
        results = tuple(names.new_results.get(result, result) for result in tool.results)
        return ToolSpec(names.new_name, tool.description, parameters, results)

    def _names_of(self, tool: str) -> ToolNames:
        return self.names_by_tool.get(tool) or ToolNames(tool)

    def _rename_step(self, step: Step, tools: Sequence[str]) -> Step:
        """Return a step with the new names; ``tools`` has the tool of each step of the plan."""
        names = self._names_of(step.tool)

        def rename(value: Scalar) -> Scalar:
            # An invalid plan may refer to a step that does not exist.
            if isinstance(value, StepRef) and 1 <= value.step <= len(tools):
                new_results = self._names_of(tools[value.step - 1]).new_results
                return replace(value, field=new_results.get(value.field, value.field))
            return value

        arguments = step.mapped(rename).arguments
        new_names = names.new_parameters
        return Step(names.new_name, tuple((new_names.get(n, n), v) for n, v in arguments))


def draw_renaming(
    tools: Sequence[ToolSpec],
    pools: Mapping[str, ToolPool],
    settings: TevoSettings,
    rng: Random,
    *,
    fixed: Collection[str] = (),
) -> Renaming:
    """Draw unique names for a prompt's tools, and for each tool's parameters and result fields.

    A result field of several tools gets the same name in all of them, if their pools share a name
    for it. In a tool of ``fixed``, only parameters and result fields are renamed; in a tool without
    a pool, nothing.
    """
    taken_keys = {key_of(tool.name) for tool in tools}
    result_names = _draw_result_names(tools, pools, settings.rename_results, rng)
    names: dict[str, ToolNames] = {}
    for tool in tools:
        if (pool := pools.get(tool.name)) is None:
            continue
        name = tool.name
        if name not in {*fixed, NO_EVIDENCE.name} and rng.random() < settings.rename_tools:
            name = _draw_name(pool.names, taken_keys, rng) or tool.name
        parameters: dict[str, str] = {}
        taken_parameter_keys = {key_of(parameter.name) for parameter in tool.parameters}
        for parameter in tool.parameters:
            entry = pool.parameters.get(parameter.name)
            if entry is not None and rng.random() < settings.rename_parameters:
                new_name = _draw_name(entry.names, taken_parameter_keys, rng)
                parameters[parameter.name] = new_name or parameter.name
        names[tool.name] = ToolNames(name, parameters, result_names[tool.name])
    return Renaming(names)


def _draw_result_names(
    tools: Sequence[ToolSpec], pools: Mapping[str, ToolPool], share: float, rng: Random
) -> dict[str, dict[str, str]]:
    """Return the new names of each tool's result fields, by the tool's name."""
    new_names: dict[str, dict[str, str]] = {tool.name: {} for tool in tools}
    taken_keys = {tool.name: set(map(key_of, tool.results)) for tool in tools}
    for result in dict.fromkeys(result for tool in tools for result in tool.results):
        alternatives = {
            tool.name: pools[tool.name].results[result]
            for tool in tools
            if result in tool.results and tool.name in pools and result in pools[tool.name].results
        }
        if not alternatives or rng.random() >= share:
            continue
        first, *others = alternatives.values()
        common = [name for name in first if all(name in names for names in others)]
        # All tools get the same name if their pools have one in common, else each gets its own.
        groups = [(list(alternatives), common)]
        if not common:
            groups = [([tool_name], [*names]) for tool_name, names in alternatives.items()]
        for group, names in groups:
            if name := _draw_name(names, set().union(*(taken_keys[tool] for tool in group)), rng):
                for tool_name in group:
                    new_names[tool_name][result] = name
                    taken_keys[tool_name].add(key_of(name))
    return new_names


def _draw_name(names: Sequence[str], taken_keys: set[str], rng: Random) -> str:
    """Return a random name whose key is free, and mark the key as taken; empty if none is free."""
    free_names = [name for name in names if key_of(name) not in taken_keys]
    name = rng.choice(free_names) if free_names else ""
    taken_keys.add(key_of(name))
    return name


@dataclass(frozen=True, slots=True)
class DrawnToolbox:
    """A toolbox with original names, and its renaming; both as in serving unless ``is_changed``."""

    toolbox: Toolbox
    renaming: Renaming
    is_changed: bool


def draw_toolbox(
    bases: Sequence[AnnotatedQuery], variation: PromptVariation, rng: Random
) -> DrawnToolbox:
    """Return a random toolbox for base queries (at least one), with all tools that they call.

    The first query's record adds and removes tools; the other queries' records only add tools.
    ``InputError`` if the first record is not valid, ``ToolError`` if different tools share a name.
    """
    settings = variation.settings
    box = bases[0].record.request(variation.toolbox).toolbox
    for base in bases[1:]:
        added = map(tool_from_record, base.record.tools_extra)
        box = box.with_(*(t for t in added if t.name not in box or box[t.name] != t))
    if not settings.enabled or rng.random() < settings.unchanged:
        return DrawnToolbox(box, Renaming(), is_changed=False)
    called = {name for query in bases for name in query.plan.tools}
    tools = _draw_subset(called, box, settings, rng)
    known_names = {*variation.toolbox.names, *box.names}
    unused = [tool for tool in variation.distractors if tool.name not in known_names]
    tools += rng.sample(unused, rng.randint(0, min(settings.distractors, len(unused))))
    rng.shuffle(tools)
    tools.append(box[NO_EVIDENCE.name])  # in serving, this tool is last, too
    # A tool that a description names keeps its name, since renaming does not change descriptions.
    fixed = {name for tool in tools for name in _mentioned_tools(tool, box.names)}
    renaming = draw_renaming(tools, variation.pools, settings, rng, fixed=fixed)
    return DrawnToolbox(Toolbox(tools), renaming, is_changed=True)


def _draw_subset(
    called: Collection[str], toolbox: Toolbox, settings: TevoSettings, rng: Random
) -> list[ToolSpec]:
    """Return the called tools and a random subset of the others, without ``no_evidence``."""
    needed = {*called, NO_EVIDENCE.name}
    others = [name for name in toolbox.names if name not in needed]
    if rng.random() < settings.drop_tools:
        others = rng.sample(others, rng.randint(0, len(others)))
    included, missing = set[str](), {*needed, *others}
    # If a tool is included, the tools that its descriptions name are included, too.
    while missing:
        included |= missing
        tools = [tool for tool in toolbox if tool.name in included]
        missing = {n for tool in tools for n in _mentioned_tools(tool, toolbox.names)} - included
    return [tool for tool in tools if tool.name != NO_EVIDENCE.name]


def _mentioned_tools(tool: ToolSpec, names: Sequence[str]) -> list[str]:
    """Return the names of other tools that occur in a tool's descriptions."""
    texts = [tool.description, *(parameter.description for parameter in tool.parameters)]
    others = [name for name in names if name != tool.name]
    return [name for text in texts if text for name in named_tools(text, others)]


@dataclass(frozen=True, slots=True)
class VariedQuery:
    """A query and its varied request; the plan and the plan cases use the request's names."""

    query: AnnotatedQuery
    request: PlanRequest
    plan: Plan
    plan_cases: tuple[PlanExample, ...] = ()


def vary_prompts(
    queries: Sequence[AnnotatedQuery], drawn: DrawnToolbox, variation: PromptVariation, rng: Random
) -> list[VariedQuery]:
    """Return queries with varied prompts, which share one toolbox and so one prompt head.

    ``drawn`` has all tools that the queries' plans need. No question of these queries is in a
    tool's example, and no question of a plan case is in a sampled example.
    """
    settings, neighbours = variation.settings, variation.neighbours
    requests = [
        PlanRequest(query.query, drawn.toolbox, query.record.context, query.record.turns())
        for query in queries
    ]
    plan_cases: list[list[AnnotatedQuery]] = [[] for _ in queries]
    if neighbours is not None and settings.shots:
        shots, share = settings.shots, settings.random_shots
        plan_cases = [neighbours.plan_cases(r, rng.randint(0, shots), share, rng) for r in requests]
    question_keys = {question_key(query.query) for query in queries}
    excluded = question_keys | {question_key(case.query) for cases in plan_cases for case in cases}
    tools = []
    for tool in drawn.toolbox:
        spec = drawn.renaming.rename_tool(tool)
        if drawn.is_changed:
            spec = _reword(spec, tool, variation.pools.get(tool.name), settings.reword, rng)
        if example := _draw_example(tool, drawn, variation, question_keys, excluded, rng):
            question, plan = example
            renamed_plan = str(drawn.renaming.rename_plan(plan))
            spec = replace(spec, example=ToolExample(question, renamed_plan))
        tools.append(spec)
    toolbox = Toolbox(tools)
    return [
        VariedQuery(
            query,
            replace(request, toolbox=toolbox),
            drawn.renaming.rename_plan(query.plan),
            tuple(_plan_case(case, drawn.renaming) for case in cases),
        )
        for query, request, cases in zip(queries, requests, plan_cases, strict=True)
    ]


def _plan_case(case: AnnotatedQuery, renaming: Renaming) -> PlanExample:
    fields = tuple(sorted(present_fields(case.record.context)))
    return PlanExample(case.query, str(renaming.rename_plan(case.plan)), context=fields)


def _reword(
    renamed_tool: ToolSpec, tool: ToolSpec, pool: ToolPool | None, share: float, rng: Random
) -> ToolSpec:
    """Return the renamed tool with some descriptions from the pool of the original ``tool``."""
    if pool is None:
        return renamed_tool

    def draw_description(text: str, others: Sequence[str]) -> str:
        return rng.choice(others) if rng.random() < share and others else text

    parameters = []
    for renamed, parameter in zip(renamed_tool.parameters, tool.parameters, strict=True):
        entry = pool.parameters.get(parameter.name)
        text = draw_description(parameter.description, entry.descriptions if entry else ())
        is_new = text != parameter.description
        parameters.append(replace(renamed, description=text) if is_new else renamed)
    text = draw_description(tool.description, pool.descriptions)
    return replace(renamed_tool, description=text, parameters=tuple(parameters))


def _draw_example(
    tool: ToolSpec,
    drawn: DrawnToolbox,
    variation: PromptVariation,
    question_keys: Container[str],
    excluded: Container[str],
    rng: Random,
) -> tuple[str, Plan] | None:
    """Return the question and plan of a tool's own example or of a sampled query, or ``None``.

    If ``drawn`` is not changed, no query is sampled. A tool's own example is dropped if its
    question is in ``question_keys``; a query whose question is in ``excluded`` is not sampled.
    """
    settings, neighbours = variation.settings, variation.neighbours
    own_example: tuple[str, Plan] | None = None
    if tool.example is not None and question_key(tool.example.query) not in question_keys:
        plan = example_plan(tool.example)
        if plan is not None and all(name in drawn.toolbox for name in plan.tools):
            own_example = tool.example.query, plan
    if not drawn.is_changed:
        return own_example
    if rng.random() < settings.no_example:
        return None
    if neighbours is not None and (own_example is None or rng.random() < settings.examples):
        query = neighbours.draw_example(tool.name, drawn.toolbox, excluded, rng)
        if query is not None:
            return query.query, query.plan
    return own_example


@lru_cache(maxsize=1024)
def example_plan(example: ToolExample) -> Plan | None:
    """Return the plan of a tool's example; ``None`` if the plan's text cannot be parsed."""
    try:
        return parse_plan(example.plan)
    except PlanError:
        return None
