"""Training examples of the corpus of toolboxes: TEvo and TTG, toolbox by toolbox."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from casewright.errors import CasewrightError
from casewright.finetune.corpus import CorpusToolbox, read_corpus, training_toolboxes
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.composing import joined
from casewright.finetune.examples.query_pool import queries_hash
from casewright.finetune.examples.shared_toolboxes import WANTED, Posing, posed
from casewright.finetune.examples.tevo import TevoSettings
from casewright.finetune.examples.ttg import TtgSettings, tasks_of
from casewright.finetune.section import Section
from casewright.finetune.shots import Neighbours, units
from casewright.planner import AnnotatedQuery, Plan, parse_plan
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
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
    results: list[AnnotatedQuery] = []
    pool = [(box, query) for box in others for query in box.queries]
    for box, query in rng.sample(pool, len(pool)):
        if len(results) == count:
            break
        record = _guest(host, box, query, rng)
        if record is None:
            continue
        result = AnnotatedQuery.read(record)
        try:
            result.record.request(host).validate(result.plan)
        except CasewrightError:
            continue
        results.append(result)
    return results


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
    shown = list(_shown_examples(box, names, given, query))
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
        record["parameters"] = {parameter.name: _described(parameter) for parameter in parameters}
    else:
        kept = record["parameters"]
        record["parameters"] = {p.name: {**kept[p.name], "required": True} for p in parameters}
    return record


def _described(parameter: Parameter) -> str:
    text = parameter.description or parameter.name.replace("_", " ")
    if not parameter.choices:
        return text
    return f"{text.rstrip('.')}: {', '.join(parameter.choices[:-1])} or {parameter.choices[-1]}"


def _shown_examples(
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
        result = _arguments(plan)
        if result and set(result) <= set(names) and all(result[n] == given[n] for n in result):
            yield {"query": question, "plan": text}


class CorpusSettings(Section):
    """``[data.corpus]``: toolboxes of other fields beside the one that is planned for.

    Attributes:
        copies: How often each of their messages is posed; 0 takes none.
        guests: For each toolbox, messages of others that bring their tools along.
        strangers: For each toolbox, messages of others that no tool of it answers.
        composed: For each toolbox, messages of it that are joined to such with several asks.
        domain_guests: Guests of the toolbox that is planned for.
        domain_strangers: Strangers of the toolbox that is planned for.
        validation: Messages of each toolbox for validation that are validated with.
    """

    copies: int = Field(default=0, ge=0, le=1000)
    guests: int = Field(default=6, ge=0)
    strangers: int = Field(default=3, ge=0)
    composed: int = Field(default=0, ge=0)
    domain_guests: int = Field(default=0, ge=0)
    domain_strangers: int = Field(default=0, ge=0)
    validation: int = Field(default=6, ge=0)


@dataclass(frozen=True, slots=True)
class CorpusExamples:
    """The examples of the corpus.

    Attributes:
        validation: Of those for validation, under the prompts that serving renders.
    """

    train: list[TrainingExample]
    validation: list[TrainingExample]
    told: dict[str, Any]


def among(
    toolbox: Toolbox, settings: CorpusSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Return the guests and strangers of the toolbox that is planned for."""
    if not (settings.domain_guests or settings.domain_strangers):
        return []
    rng = random.Random(f"{seed}:domain guests")
    boxes = training_toolboxes()
    return [
        *guests(toolbox, boxes, settings.domain_guests, rng),
        *strangers(toolbox, boxes, settings.domain_strangers, encoder, rng),
    ]


def corpus_examples(
    settings: CorpusSettings,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    *,
    seed: int,
) -> CorpusExamples:
    """Return the examples of all toolboxes."""
    if not settings.copies:
        return CorpusExamples([], [], {})
    boxes = training_toolboxes()
    train: list[TrainingExample] = []
    taken: list[AnnotatedQuery] = []
    with progress_bar("Making examples of the corpus", len(boxes)) as advance:
        for index, box in enumerate(boxes):
            rng = random.Random(f"{seed}:corpus:{box.name}")
            others = [*boxes[:index], *boxes[index + 1 :]]
            queries = [
                *box.queries,
                *guests(box.toolbox, others, settings.guests, rng),
                *strangers(box.toolbox, others, settings.strangers, encoder, rng),
                *joined(box.queries, settings.composed, rng),
            ]
            taken += queries
            train += _examples(box, queries, settings.copies, tevo, ttg, encoder, seed)
            advance(1)
    plain = tevo.model_copy(update={"enabled": False})
    alone = TtgSettings(tasks_per_query=1)
    held = []
    for box in read_corpus("validation"):
        count = min(settings.validation, len(box.queries))
        chosen = random.Random(f"{seed}:held:{box.name}").sample(box.queries, count)
        held += _examples(box, chosen, 1, plain, alone, encoder, seed)
    facts = {
        "toolboxes": len(boxes),
        "queries": len(taken),
        "examples": len(train),
        "validation": len(held),
        "sha256": hashlib.sha256(queries_hash(taken).encode()).hexdigest(),
    }
    return CorpusExamples(train, held, facts)


def _examples(
    box: CorpusToolbox,
    queries: Sequence[AnnotatedQuery],
    copies: int,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    seed: int,
) -> list[TrainingExample]:
    # Plan cases of a prompt are other messages of its toolbox.
    posing = Posing(box.toolbox, tevo, box.pools, Neighbours([*box.queries, *queries], encoder))
    results = []
    for copy, evolved, rng in posed(queries, posing, encoder, seed=seed, copies=copies):
        for item in evolved:
            for example in tasks_of(item, ttg, rng):
                # Guests of two toolboxes may be one message.
                results.append(replace(example, id=f"{box.name}:{example.id}@{copy}"))
    return without_duplicates(results)
