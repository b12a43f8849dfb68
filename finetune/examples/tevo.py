"""Tool Evolve (TEvo): a query's planning prompt with other tools, names and words.

REAPER (Joshi et al. 2024, section on Tool Evolve): beside the tools that a plan needs stands a
random subset of the others; names and descriptions come from a pool; the examples are sampled. The
gold plan follows the renaming, and stays valid for the prompt that it is the answer to.
"""

from __future__ import annotations

import random
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import Field

from casewright.errors import PlanError
from casewright.finetune.examples.renaming import RenameShares, Renaming, draw_renaming
from casewright.finetune.examples.shots import NEAREST, Neighbours, plain
from casewright.finetune.examples.tool_pools import ToolPool, named_tools
from casewright.finetune.recipe.section import Section
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, parse_plan
from casewright.tools import NO_EVIDENCE, Toolbox, ToolExample, ToolSpec


class TevoSettings(Section):
    """How far prompts are from the one that serving renders; each share is a probability.

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


@dataclass(frozen=True, slots=True)
class Evolved:
    """A query with the prompt that was drawn for it.

    Attributes:
        query: As it is annotated.
        request: Its request with the evolved toolbox.
        plan: The gold plan under the toolbox's names.
        shots: Plan cases for the prompt's tail, under the same names.
    """

    query: AnnotatedQuery
    request: PlanRequest
    plan: Plan
    shots: tuple[ToolExample, ...] = ()


def evolve(
    query: AnnotatedQuery,
    toolbox: Toolbox,
    settings: TevoSettings,
    pools: Mapping[str, ToolPool],
    neighbours: Neighbours | None,
    rng: random.Random,
    *,
    distractors: Sequence[ToolSpec] = (),
) -> Evolved:
    """Draw a prompt for an annotated query.

    Args:
        query: Its record may change the toolbox; its plan is valid for it.
        toolbox: All tools there are.
        settings: How much varies.
        pools: Other names and descriptions by tool; a tool without one keeps its own.
        neighbours: Where plan cases and examples come from; none are drawn without.
        rng: Draws: what is returned depends on its state and the other arguments alone.
        distractors: Tools that no plan here needs.

    Raises:
        InputError: The record's request is unusable; see ``QueryRecord.request``.
    """
    asked = query.record.request(toolbox)
    changed = settings.enabled and rng.random() >= settings.unchanged
    names, tools = Renaming(), list(asked.toolbox)
    if changed:
        tools = _subset(query, asked.toolbox, settings, rng)
        free = [t for t in distractors if t.name not in toolbox and t.name not in asked.toolbox]
        tools += rng.sample(free, rng.randint(0, min(settings.distractors, len(free))))
        rng.shuffle(tools)
        # Where serving has it, unless it is told otherwise.
        tools.append(asked.toolbox[NO_EVIDENCE.name])
        shares = RenameShares(
            settings.rename_tools, settings.rename_parameters, settings.rename_results
        )
        # A name that another tool's description says cannot change there.
        named = {name for tool in tools for name in _named(tool, asked.toolbox.names)}
        names = draw_renaming(tools, pools, shares, rng, fixed=sorted(named))
    own = replace(asked, toolbox=Toolbox(tools))
    shots: list[AnnotatedQuery] = []
    if neighbours is not None and settings.shots:
        count = rng.randint(0, settings.shots)
        shots = neighbours.shots(own, count, settings.random_shots, rng)
    avoid = {plain(case.query) for case in (query, *shots)}
    evolved = []
    for tool in tools:
        spec = names.spec(tool)
        example = _own_example(tool, query, own.toolbox)
        if changed:
            spec = _reworded(spec, tool, pools.get(tool.name), settings.reword, rng)
            example = _drawn_example(tool, example, own.toolbox, settings, neighbours, avoid, rng)
        evolved.append(replace(spec, example=_under(names, example)))
    return Evolved(
        query,
        replace(asked, toolbox=Toolbox(evolved)),
        names.plan(query.plan),
        tuple(ToolExample(shot.query, str(names.plan(shot.plan))) for shot in shots),
    )


def _subset(
    query: AnnotatedQuery, toolbox: Toolbox, settings: TevoSettings, rng: random.Random
) -> list[ToolSpec]:
    """Return the tools that the plan needs, and a random subset of the others."""
    needed = {*query.plan.tools, NO_EVIDENCE.name}
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


def _own_example(tool: ToolSpec, query: AnnotatedQuery, shown: Toolbox) -> tuple[str, Plan] | None:
    if tool.example is None or plain(tool.example.query) == plain(query.query):
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
        found = neighbours.example(tool.name, shown, avoid, rng)
        if found is not None:
            return found.query, found.plan
    return own


def _under(names: Renaming, example: tuple[str, Plan] | None) -> ToolExample | None:
    return None if example is None else ToolExample(example[0], str(names.plan(example[1])))
