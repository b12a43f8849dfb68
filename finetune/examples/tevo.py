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

from casewright.errors import PlanError
from casewright.finetune.examples.drawn_toolbox import DrawnToolbox
from casewright.finetune.examples.renaming import Renaming
from casewright.finetune.examples.tevo_settings import TevoSettings
from casewright.finetune.shots import Neighbours, plain
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, parse_plan
from casewright.planner.prompt import PlanExample
from casewright.tools import Toolbox, ToolExample, ToolSpec


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
        found = neighbours.example(tool.name, shown, avoid, rng)
        if found is not None:
            return found.query, found.plan
    return own


def _under(names: Renaming, example: tuple[str, Plan] | None) -> ToolExample | None:
    return None if example is None else ToolExample(example[0], str(names.plan(example[1])))
