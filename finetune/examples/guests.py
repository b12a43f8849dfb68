"""Messages of one toolbox asked among the tools of another, with their tools and without.

A request may bring tools along (``tools_extra``), declared by descriptions alone; and people ask
what no tool of a toolbox answers. Both are made from the corpus: a guest brings the tools that its
plan calls, a stranger brings none and is planned ``no_evidence()``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from casewright.errors import CasewrightError
from casewright.finetune.corpus.corpus import CorpusToolbox
from casewright.finetune.examples.shared_toolboxes import WANTED
from casewright.finetune.shots import units
from casewright.planner import AnnotatedQuery, Plan, parse_plan
from casewright.stores import Encoder
from casewright.tools import NO_EVIDENCE, Parameter, Toolbox, ToolSpec
from casewright.tools.from_file import toolbox_to_records

#: Tools that a guest brings along at most.
MOST_TOOLS = 3
#: The share of guests whose tools declare their parameters by descriptions alone.
BARE = 0.7


def guests(
    host: Toolbox, others: Sequence[CorpusToolbox], count: int, rng: random.Random
) -> list[AnnotatedQuery]:
    """Draw messages of other toolboxes whose records bring the tools that their plans call.

    Args:
        host: The toolbox that they are asked among.
        others: Toolboxes to draw from.
        count: At most how many are drawn.
        rng: Draws.

    Returns:
        Queries whose plans are valid for the host with their own tools.
    """
    found: list[AnnotatedQuery] = []
    pool = [(box, query) for box in others for query in box.queries]
    for box, query in rng.sample(pool, len(pool)):
        if len(found) == count:
            break
        record = _guest(host, box, query, rng)
        if record is None:
            continue
        made = AnnotatedQuery.read(record)
        try:
            made.record.request(host).validate(made.plan)
        except CasewrightError:
            continue
        found.append(made)
    return found


def strangers(
    host: Toolbox,
    others: Sequence[CorpusToolbox],
    count: int,
    encoder: Encoder,
    rng: random.Random,
) -> list[AnnotatedQuery]:
    """Draw messages of other toolboxes that no tool of the host is like.

    Args:
        host: The toolbox that they are asked among.
        others: Toolboxes to draw from.
        count: At most how many are drawn.
        encoder: Tells what is alike.
        rng: Draws.

    Returns:
        Queries that are planned ``no_evidence()``.
    """
    pool = [
        query for box in others for query in box.queries if NO_EVIDENCE.name not in query.plan.tools
    ]
    drawn = rng.sample(pool, min(len(pool), 3 * count))
    tools = [f"{tool.name}: {tool.description}" for tool in host if tool.name != NO_EVIDENCE.name]
    likeness = units(encoder, [query.query for query in drawn]) @ units(encoder, tools).T
    kept = [query for query, row in zip(drawn, likeness, strict=True) if np.max(row) < WANTED]
    return [
        AnnotatedQuery.read(
            {
                "id": f"{query.record.id}~stranger",
                "query": query.query,
                "context": query.record.context,
                "plan": f"s1 = {NO_EVIDENCE.name}()",
                "class": NO_EVIDENCE.name,
            }
        )
        for query in kept[:count]
    ]


def _guest(
    host: Toolbox, box: CorpusToolbox, query: AnnotatedQuery, rng: random.Random
) -> dict[str, Any] | None:
    """Return a guest's record; none where its tools could not be the request's own."""
    names = sorted(set(query.plan.tools))
    if NO_EVIDENCE.name in names or len(names) > MOST_TOOLS or any(n in host for n in names):
        return None
    given = _arguments(query.plan)
    if given is None:
        return None
    bare = rng.random() < BARE
    tools = [_brought(box.toolbox[name], given[name], bare=bare) for name in names]
    shown = list(_examples(box, names, given, query))
    if shown:
        rng.choice(tools)["example"] = rng.choice(shown)
    return {
        "id": f"{query.record.id}~guest",
        "query": query.query,
        "context": query.record.context,
        "plan": str(query.plan),
        "class": query.label,
        "tools_extra": rng.sample(tools, len(tools)),
    }


def _arguments(plan: Plan) -> dict[str, frozenset[str]] | None:
    """Return the parameters that each tool is given; none where a tool is given now these, now
    those: all that a request brings along must be given."""
    given: dict[str, frozenset[str]] = {}
    for step in plan.steps:
        names = frozenset(name for name, _ in step.arguments)
        if given.setdefault(step.tool, names) != names:
            return None
    return given


def _brought(tool: ToolSpec, given: frozenset[str], *, bare: bool) -> dict[str, Any]:
    record = next(iter(toolbox_to_records(Toolbox([tool]))))
    record.pop("example", None)
    parameters = [parameter for parameter in tool.parameters if parameter.name in given]
    if bare:
        record["parameters"] = {one.name: _described(one) for one in parameters}
    else:
        kept = record["parameters"]
        record["parameters"] = {p.name: {**kept[p.name], "required": True} for p in parameters}
    return record


def _described(parameter: Parameter) -> str:
    text = parameter.description or parameter.name.replace("_", " ")
    if not parameter.choices:
        return text
    return f"{text.rstrip('.')}: {', '.join(parameter.choices[:-1])} or {parameter.choices[-1]}"


def _examples(
    box: CorpusToolbox,
    names: Sequence[str],
    given: dict[str, frozenset[str]],
    query: AnnotatedQuery,
) -> Iterator[dict[str, str]]:
    """Yield examples that call these tools alone, with the same parameters, of other questions."""
    own = [(tool.example.query, tool.example.plan) for tool in box.toolbox if tool.example]
    others = [(other.query, str(other.plan)) for other in box.queries if other is not query]
    for question, text in (*own, *others):
        plan = parse_plan(text)
        found = _arguments(plan)
        if found and set(found) <= set(names) and all(found[n] == given[n] for n in found):
            yield {"query": question, "plan": text}
