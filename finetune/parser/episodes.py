"""Episodes for the plan parser: toolboxes under drawn names, with messages and their plan cases."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.examples.composing import composed
from casewright.finetune.examples.tevo import TevoSettings, draw_toolbox, pose
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery, parse_plan
from casewright.planner.parser.example_cases import example_cases
from casewright.planner.parser.message import Message, read_message
from casewright.planner.parser.plan_reading import ReadStep, read_plan
from casewright.planner.parser.schema import Schema
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

if TYPE_CHECKING:
    from tokenizers import Tokenizer


#: How names and descriptions vary.
VARIATION = TevoSettings(
    unchanged=0,
    drop_tools=0,
    rename_tools=0.7,
    rename_parameters=0.5,
    rename_results=0.5,
    reword=0.7,
    no_example=0.25,
    shots=0,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A source of episodes: a toolbox with its pools and annotated messages."""

    name: str
    toolbox: Toolbox
    pools: Mapping[str, ToolPool]
    queries: Sequence[AnnotatedQuery]


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """Settings of the variation of episodes; each share is a probability.

    Attributes:
        messages: Most of an episode.
        mixed: Of an episode, to have the tools of two toolboxes, and messages of both.
        removed: Of an episode, to lack a tool; messages that need it are planned no_evidence.
        added: Of an episode, to have tools of another toolbox that no message needs.
        most_added: How many at most.
        composed: Of a message, at most, to be joined with another to several asks.
        alone: Of an episode, to have no cases but the tools' examples.
        examples: Of a tool's example, to be a case.
    """

    messages: int = 30
    mixed: float = 0.12
    removed: float = 0.2
    added: float = 0.4
    most_added: int = 4
    composed: float = 0.5
    alone: float = 0.35
    examples: float = 0.85


@dataclass(frozen=True, slots=True)
class Episode:
    """The data of one training step.

    Attributes:
        schema: The toolbox.
        messages: The messages to plan for, then those of the tools' examples.
        contexts: Of the messages to plan for.
        plans: Of all messages, read.
        asked: How many messages are planned for.
        known: Of each of these, which messages are its cases.
    """

    schema: Schema
    messages: list[Message]
    contexts: list[Mapping[str, Any]]
    plans: list[list[ReadStep]]
    asked: int
    known: list[list[bool]]


def episodes(
    sources: Sequence[Source], tokenizer: Tokenizer, settings: EpisodeSettings, rng: random.Random
) -> Iterator[Episode]:
    """Yield an episode a source, in random order; one of which nothing can be read is left out."""
    for source in rng.sample(sources, len(sources)):
        drawn = source
        if rng.random() < settings.mixed:
            drawn = _mixed(source, rng.choice(sources), rng)
        toolbox, queries = _drawn(drawn, sources, settings, rng)
        if (result := _episode(toolbox, queries, tokenizer, settings, rng)) is not None:
            yield result


def _mixed(one: Source, other: Source, rng: random.Random) -> Source:
    """Return two sources as one: all tools of both, half the messages of each."""
    if any(tool.name in one.toolbox for tool in other.toolbox if tool.name != NO_EVIDENCE.name):
        return one
    tools = [t for t in (*one.toolbox, *other.toolbox) if t.name != NO_EVIDENCE.name]
    rng.shuffle(tools)
    queries = [
        query
        for source in (one, other)
        for query in rng.sample(source.queries, len(source.queries) // 2)
    ]
    return Source(one.name, Toolbox(tools), {**one.pools, **other.pools}, queries)


def varied(source: Source, number: int) -> Source:
    """Return a source under other names and descriptions; 0 is its own.

    They are drawn once a number and not anew in every episode, so that each card is encoded once.
    """
    if not number:
        return source
    rng = random.Random(f"{source.name}:{number}")
    drawn = draw_toolbox(source.queries, source.toolbox, VARIATION, source.pools, rng)
    evolved = pose(source.queries, drawn, VARIATION, source.pools, None, rng)
    queries = [replace(item.query, plan=item.plan) for item in evolved]
    return replace(source, toolbox=evolved[0].request.toolbox, queries=queries)


def _drawn(
    source: Source, sources: Sequence[Source], settings: EpisodeSettings, rng: random.Random
) -> tuple[Toolbox, list[AnnotatedQuery]]:
    """Return an episode's tools, with some left out and others added, and its messages."""
    queries = rng.sample(source.queries, min(settings.messages, len(source.queries)))
    queries = composed(queries, rng.uniform(0, settings.composed), rng)
    toolbox = source.toolbox
    if rng.random() < settings.removed:
        toolbox, queries = _without_a_tool(toolbox, queries, rng)
    tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    if rng.random() < settings.added:
        other = rng.choice(sources).toolbox
        names = {tool.name for tool in tools}
        free = [t for t in other if t.name not in names and t.name != NO_EVIDENCE.name]
        tools += rng.sample(free, min(len(free), rng.randint(1, settings.most_added)))
    return Toolbox(rng.sample(tools, len(tools))), queries


def _without_a_tool(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery], rng: random.Random
) -> tuple[Toolbox, list[AnnotatedQuery]]:
    """Return the toolbox without one tool, and the messages; some now have no answer."""
    names = [name for name in toolbox.names if name != NO_EVIDENCE.name]
    gone = rng.choice(names)
    nothing = parse_plan(f"s1 = {NO_EVIDENCE.name}()")
    kept = []
    for query in queries:
        if gone not in query.plan.tools:
            kept.append(query)
        elif query.plan.tools[-1] == gone and len(query.plan.tools) < 3 and rng.random() < 0.3:
            kept.append(replace(query, plan=nothing))
    return toolbox.without(gone), kept


def _episode(
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    tokenizer: Tokenizer,
    settings: EpisodeSettings,
    rng: random.Random,
) -> Episode | None:
    schema = Schema.of(toolbox, tokenizer)
    messages, plans = [], []
    contexts: list[Mapping[str, Any]] = []
    for query in queries:
        message = read_message(tokenizer, query.query, query.record.context)
        plan = read_plan(query.plan, schema, message)
        if plan is not None and message.words:
            messages.append(message)
            plans.append(plan)
            contexts.append(query.record.context)
    asked = len(messages)
    if asked < 2:
        return None
    own = {message.question for message in messages}
    for case in example_cases(toolbox):
        message = read_message(tokenizer, case.question, case.context)
        plan = read_plan(case.plan, schema, message)
        if plan and case.question not in own and rng.random() < settings.examples:
            messages.append(message)
            plans.append(plan)
    return Episode(
        schema, messages, contexts, plans, asked, _known(asked, len(messages), settings, rng)
    )


def _known(
    asked: int, count: int, settings: EpisodeSettings, rng: random.Random
) -> list[list[bool]]:
    """Return which messages are cases of each: examples, and a number of the others."""
    few = 0 if rng.random() < settings.alone else rng.randint(1, asked - 1)
    shared = set(rng.sample(range(asked), few))
    return [
        [(other in shared and other != item) or other >= asked for other in range(count)]
        for item in range(asked)
    ]


#: Names and descriptions that a toolbox is seen under, its own included: each is encoded once.
VARIANTS = 12


def drawing(
    boxes: Sequence[CorpusToolbox], others: Sequence[Source] = ()
) -> Callable[[random.Random], list[Source]]:
    """Return what draws the sources of a pass: every toolbox once, under one of its variants.

    Args:
        boxes: Toolboxes for training.
        others: Further sources, such as parts of a domain's queries with its toolbox.
    """
    own = [Source(box.name, box.toolbox, box.pools, box.queries) for box in boxes]
    results: dict[tuple[int, int], Source] = {}

    def draw(rng: random.Random) -> list[Source]:
        entries = []
        for index, source in enumerate([*own, *others]):
            key = index, rng.randrange(VARIANTS)
            if key not in results:
                results[key] = varied(source, key[1])
            entries.append(results[key])
        return entries

    return draw


def digest(boxes: Sequence[CorpusToolbox]) -> str:
    """Return a hash of what can be learned of toolboxes: tools, messages and plans."""
    result = hashlib.sha256()
    for box in boxes:
        result.update(f"{box.name} {box.toolbox.fingerprint()}".encode())
        for query in box.queries:
            result.update(f"{query.query}\n{query.plan}\n".encode())
    return result.hexdigest()[:16]


def parts_of(source: Source, count: int, rng: random.Random) -> list[Source]:
    """Deal a source's messages to so many sources of the same toolbox."""
    order = rng.sample(source.queries, len(source.queries))
    parts = [order[start::count] for start in range(count)]
    return [
        Source(f"{source.name}-{index}", source.toolbox, source.pools, part)
        for index, part in enumerate(parts)
    ]


#: Messages of a source, and the share of the tools that are kept for validation.
TOGETHER, HELD = 12, 4


@dataclass(frozen=True, slots=True)
class BroughtAlong:
    """Messages that bring tools along, split by tool.

    Attributes:
        training: Sources, each of some messages and the tools that these bring.
        held: Messages for validation; no tool that they bring is trained on.
    """

    training: list[Source]
    held: list[AnnotatedQuery]


def brought_along(name: str, toolbox: Toolbox, queries: Sequence[AnnotatedQuery]) -> BroughtAlong:
    """Split a domain's messages that bring tools along, and group them.

    Args:
        name: The domain's.
        toolbox: Its own tools.
        queries: Its annotated messages; those without tools of their own, and those that no tool
            answers, since that may not hold beside others' tools, are left out.
    """
    bringing = [
        query
        for query in queries
        if query.record.tools_extra
        and not query.record.tools_removed
        and NO_EVIDENCE.name not in query.plan.tools
    ]
    held = [query for query in bringing if any(map(_is_held, _brought(query, toolbox)))]
    ids = {id(query) for query in held}
    groups: list[tuple[dict[str, ToolSpec], list[AnnotatedQuery]]] = []
    for query in bringing:
        if id(query) in ids:
            continue
        tools = {tool.name: tool for tool in _brought(query, toolbox)}
        for known, own in groups:
            # One name may be declared in two ways.
            if len(own) < TOGETHER and all(known.get(n, tool) == tool for n, tool in tools.items()):
                known.update(tools)
                own.append(query)
                break
        else:
            groups.append((tools, [query]))
    training = [
        Source(f"{name}+{number}", toolbox.with_(*tools.values()), {}, [_plain(q) for q in own])
        for number, (tools, own) in enumerate(groups)
    ]
    return BroughtAlong(training, held)


def _brought(query: AnnotatedQuery, toolbox: Toolbox) -> Iterable[ToolSpec]:
    own = set(toolbox.names)
    return [tool for tool in query.record.request(toolbox).toolbox if tool.name not in own]


def _is_held(tool: ToolSpec) -> bool:
    return hashlib.sha256(tool.name.encode()).digest()[0] % HELD == 0


def _plain(query: AnnotatedQuery) -> AnnotatedQuery:
    record = query.record.model_copy(update={"tools_extra": []})
    return AnnotatedQuery(record, query.plan, query.label, query.must, query.accept)
