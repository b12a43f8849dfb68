"""Episodes to train the plan parser on: each has a toolbox, messages and their plan cases."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.examples import tevo
from casewright.finetune.examples.composing import with_joined_queries
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery, parse_plan
from casewright.planner.parser.example_cases import example_cases
from casewright.planner.parser.message import Message, read_message
from casewright.planner.parser.plan_reading import ReadStep, read_plan
from casewright.planner.parser.schema import Schema
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Settings by which the names and descriptions of a toolbox are varied.
VARIATION = tevo.TevoSettings(
    unchanged=0,
    drop_tools=0,
    rename_tools=0.7,
    rename_parameters=0.5,
    rename_results=0.5,
    reword=0.7,
    no_example=0.25,
    shots=0,
)
#: Number of variants of a toolbox, including the original. The number is small, since the encodings
#: of all variants' messages stay in memory.
VARIANT_COUNT = 12
#: Maximum number of messages whose own tools are joined in one toolbox.
MAX_GROUP = 12
#: Of the tools that records add, about one in this many is held out for validation.
HELD_OUT_DIVISOR = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A source of episodes: a toolbox, pools of alternative names, and messages (``queries``)."""

    name: str
    toolbox: Toolbox
    pools: Mapping[str, ToolPool]
    queries: Sequence[AnnotatedQuery]


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """Settings by which episodes vary.

    Attributes:
        max_messages: Maximum number of drawn messages, before some of them are joined.
        mixed: Probability that an episode mixes the tools and messages of two toolboxes.
        few: Probability that few tools remain; see ``_with_few_tools``. ``removed`` and ``added``
            apply to the other episodes only.
        removed: Probability that a tool is removed; see ``_without_a_tool``.
        added: Probability that unneeded tools of another toolbox are added.
        max_added: Maximum number of added tools.
        composed: Maximum share of an episode's messages that are joined with another message.
        examples_only: Probability that only the tools' examples are plan cases.
        examples: Probability, for each tool's example, that it is a plan case.
    """

    max_messages: int = 30
    mixed: float = 0.12
    few: float = 0.3
    removed: float = 0.2
    added: float = 0.4
    max_added: int = 4
    composed: float = 0.5
    examples_only: float = 0.35
    examples: float = 0.85


@dataclass(frozen=True, slots=True)
class Episode:
    """The data of one training step.

    Attributes:
        schema: The toolbox, as the parser reads it.
        messages: The messages to plan for, then the messages of the tools' examples.
        contexts: The contexts of the messages to plan for.
        plans: The gold plans of all messages.
        planned_count: Number of messages to plan for.
        is_case: ``is_case[i][j]`` is true if message j is a plan case of message i.
    """

    schema: Schema
    messages: list[Message]
    contexts: list[Mapping[str, Any]]
    plans: list[list[ReadStep]]
    planned_count: int
    is_case: list[list[bool]]


def episodes(
    sources: Sequence[Source], tokenizer: Tokenizer, settings: EpisodeSettings, rng: random.Random
) -> Iterator[Episode]:
    """Yield an episode for each source with enough usable messages, in random order."""
    for source in rng.sample(sources, len(sources)):
        if rng.random() < settings.mixed:
            source = _mix_sources(source, rng.choice(sources), rng)
        toolbox, queries = _tools_and_messages(source, sources, settings, rng)
        if (episode := _make_episode(toolbox, queries, tokenizer, settings, rng)) is not None:
            yield episode


def _mix_sources(source: Source, other: Source, rng: random.Random) -> Source:
    """Return a mix of two sources, with half of their messages; ``source`` if tool names clash."""
    tools, other_tools = _declared_tools(source.toolbox), _declared_tools(other.toolbox)
    if any(tool.name in source.toolbox for tool in other_tools):
        return source
    tools += other_tools
    rng.shuffle(tools)
    halves = [rng.sample(part.queries, len(part.queries) // 2) for part in (source, other)]
    return Source(
        source.name, Toolbox(tools), {**source.pools, **other.pools}, halves[0] + halves[1]
    )


def _declared_tools(toolbox: Toolbox) -> list[ToolSpec]:
    """Return a toolbox's tools except ``no_evidence``, which every ``Toolbox`` adds."""
    return [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]


def vary_source(source: Source, number: int) -> Source:
    """Return a variant of a source; the seed ``number`` determines names and descriptions.

    Variant 0 is the source itself.
    """
    if not number:
        return source
    rng = random.Random(f"{source.name}:{number}")
    variation = tevo.PromptVariation(source.toolbox, VARIATION, source.pools)
    drawn = tevo.draw_toolbox(source.queries, variation, rng)
    varied = tevo.vary_prompts(source.queries, drawn, variation, rng)
    queries = [replace(item.query, plan=item.plan) for item in varied]
    # All varied messages have the same toolbox.
    return replace(source, toolbox=varied[0].request.toolbox, queries=queries)


def _tools_and_messages(
    source: Source, sources: Sequence[Source], settings: EpisodeSettings, rng: random.Random
) -> tuple[Toolbox, list[AnnotatedQuery]]:
    """Return the toolbox and messages of an episode; some tools may be removed, others added."""
    toolbox = source.toolbox
    queries = rng.sample(source.queries, min(settings.max_messages, len(source.queries)))
    queries = with_joined_queries(queries, rng.uniform(0, settings.composed), rng)
    is_small = rng.random() < settings.few
    if is_small:
        toolbox, queries = _with_few_tools(toolbox, queries, rng)
    elif rng.random() < settings.removed:
        toolbox, queries = _without_a_tool(toolbox, queries, rng)
    tools = _declared_tools(toolbox)
    if not is_small and rng.random() < settings.added:
        others = [tool for tool in rng.choice(sources).toolbox if tool.name not in toolbox]
        tools += rng.sample(others, min(len(others), rng.randint(1, settings.max_added)))
    return Toolbox(rng.sample(tools, len(tools))), queries


def _with_few_tools(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery], rng: random.Random
) -> tuple[Toolbox, list[AnnotatedQuery]]:
    """Return a toolbox of one message's tools and at most two other tools, and messages for it.

    A user's first toolbox is usually small, but can answer most messages. So at most one in five of
    the returned messages has the plan ``no_evidence()``.
    """
    names = {tool.name for tool in _declared_tools(toolbox)}
    kept_names = set(rng.choice(queries).plan.tools) & names
    other_names = sorted(names - kept_names)
    # If the message needs one tool only, at least one other tool is added.
    count = rng.randint(0 if len(kept_names) > 1 else 1, 2)
    kept_names.update(rng.sample(other_names, min(len(other_names), count)))
    answerable = [query for query in queries if kept_names.issuperset(query.plan.tools)]
    unanswerable = [query for query in queries if NO_EVIDENCE.name in query.plan.tools]
    return toolbox.without(*(names - kept_names)), answerable + unanswerable[: len(answerable) // 4]


def _without_a_tool(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery], rng: random.Random
) -> tuple[Toolbox, list[AnnotatedQuery]]:
    """Return a toolbox without one tool, and the messages that do not need it.

    A message whose plan has one or two steps, and calls the tool last, gets the plan
    ``no_evidence()`` with a probability of 30 %. The other messages that need the tool are dropped,
    since other steps of a longer plan may answer a part of the message.
    """
    removed = rng.choice(_declared_tools(toolbox)).name
    no_evidence = parse_plan(f"s1 = {NO_EVIDENCE.name}()")
    remaining = []
    for query in queries:
        tools = query.plan.tools
        if removed not in tools:
            remaining.append(query)
        elif tools[-1] == removed and len(tools) < 3 and rng.random() < 0.3:
            remaining.append(replace(query, plan=no_evidence))
    return toolbox.without(removed), remaining


def _make_episode(
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    tokenizer: Tokenizer,
    settings: EpisodeSettings,
    rng: random.Random,
) -> Episode | None:
    """Return an episode; ``None`` if it has fewer than two messages, or no plan with arguments."""
    schema = Schema.of(toolbox, tokenizer)
    messages, plans = [], []
    contexts: list[Mapping[str, Any]] = []
    for query in queries:
        message = read_message(tokenizer, query.query, query.record.context)
        plan = read_plan(query.plan, schema, message)
        # ``read_plan`` returns ``None`` for a plan with a value that is not in the message.
        if plan is not None and message.words:
            messages.append(message)
            plans.append(plan)
            contexts.append(query.record.context)
    planned_count = len(messages)
    if planned_count < 2 or not any(step.arguments for plan in plans for step in plan):
        return None
    questions = {message.question for message in messages}
    for case in example_cases(toolbox):
        message = read_message(tokenizer, case.question, case.context)
        plan = read_plan(case.plan, schema, message)
        if plan is not None and case.question not in questions and rng.random() < settings.examples:
            messages.append(message)
            plans.append(plan)
    # The examples and a sample of the messages are plan cases; no message is its own plan case.
    only_examples = rng.random() < settings.examples_only
    sample_size = 0 if only_examples else rng.randint(1, planned_count - 1)
    cases = {*range(planned_count, len(messages)), *rng.sample(range(planned_count), sample_size)}
    is_case = [[j in cases and j != i for j in range(len(messages))] for i in range(planned_count)]
    return Episode(schema, messages, contexts, plans, planned_count, is_case)


def source_drawer(
    boxes: Sequence[CorpusToolbox], others: Sequence[Source] = (), extended: Sequence[Source] = ()
) -> Callable[[random.Random], list[Source]]:
    """Return a function that draws the sources of a pass: a variant of each toolbox and source.

    Each source in ``extended`` is also mixed with a random variant, as if requests added tools.
    """
    sources = [Source(box.name, box.toolbox, box.pools, box.queries) for box in boxes]
    sources += others
    variant_functions = [cache(partial(vary_source, source)) for source in sources]

    def draw(rng: random.Random) -> list[Source]:
        variants = [variant_of(rng.randrange(VARIANT_COUNT)) for variant_of in variant_functions]
        return variants + [_mix_sources(source, rng.choice(variants), rng) for source in extended]

    return draw


def digest(boxes: Sequence[CorpusToolbox]) -> str:
    """Return a hash of the tools, messages and plans of toolboxes."""
    hasher = hashlib.sha256()
    for box in boxes:
        hasher.update(f"{box.name} {box.toolbox.fingerprint()}".encode())
        for query in box.queries:
            hasher.update(f"{query.query}\n{query.plan}\n".encode())
    return hasher.hexdigest()[:16]


def split_source(source: Source, count: int, rng: random.Random) -> list[Source]:
    """Return ``count`` sources that share a source's toolbox and divide its messages."""
    shuffled = rng.sample(source.queries, len(source.queries))
    return [
        replace(source, name=f"{source.name}-{index}", queries=shuffled[index::count])
        for index in range(count)
    ]


class AddedToolSources(NamedTuple):
    """Messages whose records add tools: sources for training, and messages for validation."""

    training: list[Source]
    validation: list[AnnotatedQuery]


def added_tool_sources(
    name: str, toolbox: Toolbox, queries: Sequence[AnnotatedQuery]
) -> AddedToolSources:
    """Return training sources and validation messages from messages whose records add tools.

    A training source is a group of messages; its toolbox also has the tools that these add.
    Messages with a held-out tool are for validation. Messages that remove tools are omitted.
    Messages with ``no_evidence()`` are also omitted, since a tool of another message in the group
    may answer them.
    """
    validation = []
    groups: list[tuple[dict[str, ToolSpec], list[AnnotatedQuery]]] = []
    for query in queries:
        record = query.record
        if not record.tools_extra or record.tools_removed or NO_EVIDENCE.name in query.plan.tools:
            continue
        added = [tool for tool in record.request(toolbox).toolbox if tool.name not in toolbox]
        if any(_is_held_out(tool) for tool in added):
            validation.append(query)
            continue
        # The group's toolbox will have the added tools, so the record no longer adds them.
        without_added = replace(query, record=record.model_copy(update={"tools_extra": []}))
        for tools, group in groups:
            # Messages that declare different tools with one name are in different groups.
            if len(group) < MAX_GROUP and all(tools.get(tool.name, tool) == tool for tool in added):
                tools.update({tool.name: tool for tool in added})
                group.append(without_added)
                break
        else:
            groups.append(({tool.name: tool for tool in added}, [without_added]))
    training = [
        Source(f"{name}+{number}", toolbox.with_(*tools.values()), {}, group)
        for number, (tools, group) in enumerate(groups)
    ]
    return AddedToolSources(training, validation)


def _is_held_out(tool: ToolSpec) -> bool:
    # A hash of the name makes the choice independent of all other tools.
    return hashlib.sha256(tool.name.encode()).digest()[0] % HELD_OUT_DIVISOR == 0
