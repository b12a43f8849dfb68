"""Makes training examples from the corpus of toolboxes.

A toolbox has its own messages, and two kinds of messages of other toolboxes. The tools of a *guest*
are added to the toolbox. None of the toolbox's tools answers a *stranger*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from pydantic import Field

from casewright.errors import CasewrightError
from casewright.finetune.corpus import CorpusToolbox, read_corpus, training_toolboxes
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.composing import joined_queries
from casewright.finetune.examples.query_pool import queries_hash
from casewright.finetune.examples.shared_toolboxes import NEEDED_TOOL_SIMILARITY, vary_in_groups
from casewright.finetune.examples.tevo import PromptVariation, TevoSettings
from casewright.finetune.examples.ttg import TtgSettings, task_examples
from casewright.finetune.neighbours import Neighbours, tool_embeddings, unit_embeddings
from casewright.finetune.section import Section
from casewright.planner import AnnotatedQuery, Plan, parse_plan
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import NO_EVIDENCE, Parameter, Toolbox, ToolSpec
from casewright.tools.from_file import toolbox_to_records

#: Maximum number of tools that a guest adds to the toolbox.
MAX_GUEST_TOOLS = 3
#: Share of guests whose tools are bare: they declare only their parameters' names and descriptions.
BARE_SHARE = 0.7


def guest_queries(
    toolbox: Toolbox, others: Sequence[CorpusToolbox], count: int, rng: Random
) -> list[AnnotatedQuery]:
    """Return up to ``count`` guests from the other toolboxes, with the tools that they add."""
    candidates = [(box, query) for box in others for query in box.queries]
    shuffled = rng.sample(candidates, len(candidates))
    guests = (_make_guest(toolbox, box, query, rng) for box, query in shuffled)
    return list(islice(filter(None, guests), count))


def stranger_queries(
    toolbox: Toolbox, others: Sequence[CorpusToolbox], count: int, encoder: Encoder, rng: Random
) -> list[AnnotatedQuery]:
    """Return up to ``count`` strangers, which resemble no tool; their plan is ``no_evidence``."""
    candidates = [
        query
        for box in others
        for query in box.queries
        if NO_EVIDENCE.name not in query.plan.tools and not query.record.history
    ]
    # Some messages resemble a tool, so the sample is larger than the count.
    sample = rng.sample(candidates, min(len(candidates), 3 * count))
    tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    questions = unit_embeddings(encoder, [query.query for query in sample])
    cosines = questions @ tool_embeddings(encoder, tools).T
    pairs = zip(sample, cosines, strict=True)
    unanswered = [query for query, row in pairs if np.max(row) < NEEDED_TOOL_SIMILARITY]
    plan, label = f"s1 = {NO_EVIDENCE.name}()", NO_EVIDENCE.name
    return [
        AnnotatedQuery.read({**_query_record(query, "stranger"), "plan": plan, "class": label})
        for query in unanswered[:count]
    ]


def decoy_queries(
    queries: Sequence[AnnotatedQuery], count: int, rng: Random
) -> list[AnnotatedQuery]:
    """Return decoys: random messages that need no history, with the history of another message.

    From decoys, a planner learns to ignore an unrelated history. Messages with a context are
    omitted: a pronoun that refers to the context could also refer to the history.
    """
    histories = [query.record.history for query in queries if query.record.history]
    standalone = [query for query in queries if not (query.record.history or query.record.context)]
    if not histories:
        return []
    decoys = []
    for query in rng.sample(standalone, min(count, len(standalone))):
        changes = {"id": f"{query.record.id}~after", "history": rng.choice(histories)}
        decoys.append(replace(query, record=query.record.model_copy(update=changes)))
    return decoys


def _make_guest(
    toolbox: Toolbox, box: CorpusToolbox, query: AnnotatedQuery, rng: Random
) -> AnnotatedQuery | None:
    """Return a query of ``box`` as a guest of ``toolbox``; ``None`` if its tools do not fit."""
    names = sorted(set(query.plan.tools))
    has_taken_name = any(name in toolbox or name == NO_EVIDENCE.name for name in names)
    parameter_names = _called_parameters(query.plan)
    if len(names) > MAX_GUEST_TOOLS or has_taken_name or parameter_names is None:
        return None
    bare = rng.random() < BARE_SHARE
    tools = [_tool_record(box.toolbox[name], parameter_names[name], bare=bare) for name in names]
    if examples := list(_tool_examples(box, parameter_names, query)):
        rng.choice(tools)["example"] = rng.choice(examples)
    record = {
        **_query_record(query, "guest"),
        "history": query.record.history,
        "plan": str(query.plan),
        "class": query.label,
        "tools_extra": rng.sample(tools, len(tools)),
    }
    guest = AnnotatedQuery.read(record)
    try:
        guest.record.request(toolbox).validate(guest.plan)
    except CasewrightError:
        return None
    return guest


def _query_record(query: AnnotatedQuery, id_suffix: str) -> dict[str, Any]:
    id_ = f"{query.record.id}~{id_suffix}"
    return {"id": id_, "query": query.query, "context": query.record.context}


def _called_parameters(plan: Plan) -> dict[str, frozenset[str]] | None:
    """Return the names of the parameters with which a plan calls each tool.

    ``None`` if two calls of a tool have different parameters.
    """
    parameters: dict[str, frozenset[str]] = {}
    for step in plan.steps:
        names = frozenset(name for name, _ in step.arguments)
        if parameters.setdefault(step.tool, names) != names:
            return None
    return parameters


def _tool_record(tool: ToolSpec, parameter_names: frozenset[str], *, bare: bool) -> dict[str, Any]:
    """Return a tool's record with these parameters; if ``bare``, each is only a description."""
    record = next(iter(toolbox_to_records(Toolbox([tool]))))
    record.pop("example", None)
    declared = record["parameters"]
    record["parameters"] = {
        p.name: _description(p) if bare else {**declared[p.name], "required": True}
        for p in tool.parameters
        if p.name in parameter_names
    }
    return record


def _description(parameter: Parameter) -> str:
    text = parameter.description or parameter.name.replace("_", " ")
    if not parameter.choices:
        return text
    return f"{text.rstrip('.')}: {', '.join(parameter.choices[:-1])} or {parameter.choices[-1]}"


def _tool_examples(
    box: CorpusToolbox, parameters: dict[str, frozenset[str]], query: AnnotatedQuery
) -> Iterator[dict[str, str]]:
    """Yield examples: ``box``'s other questions whose plans use only these tools and parameters."""
    examples = [(tool.example.query, tool.example.plan) for tool in box.toolbox if tool.example]
    examples += [
        (other.query, str(other.plan))
        for other in box.queries
        if other is not query and not other.record.history
    ]
    for question, text in examples:
        calls = _called_parameters(parse_plan(text))
        if calls and calls.items() <= parameters.items():
            yield {"query": question, "plan": text}


class CorpusSettings(Section):
    """``[data.corpus]``: toolboxes of other subjects, in addition to the domain's toolbox.

    The settings other than ``copies`` are numbers of messages for one toolbox.

    Attributes:
        copies: Number of prompts for each message; 0 omits the corpus.
        guests: Messages of other toolboxes, with their tools.
        strangers: Messages of other toolboxes that none of the toolbox's tools answers.
        composed: Messages of the toolbox that are joined into longer messages.
        decoys: Messages that need no history, but get the history of another message of the
            toolbox, if there is one.
        domain_guests: Guests for the domain's toolbox.
        domain_strangers: Strangers for the domain's toolbox.
        validation: Messages for validation, from each of the corpus's validation toolboxes.
    """

    copies: int = Field(default=0, ge=0, le=1000)
    guests: int = Field(default=6, ge=0)
    strangers: int = Field(default=3, ge=0)
    composed: int = Field(default=0, ge=0)
    decoys: int = Field(default=0, ge=0)
    domain_guests: int = Field(default=0, ge=0)
    domain_strangers: int = Field(default=0, ge=0)
    validation: int = Field(default=6, ge=0)


@dataclass(frozen=True, slots=True)
class CorpusExamples:
    """Training examples, validation examples (with tools as in serving), and a manifest's entry."""

    train: list[TrainingExample]
    validation: list[TrainingExample]
    manifest_entry: dict[str, Any]


def added_queries(
    toolbox: Toolbox, settings: CorpusSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Return guests and strangers for the domain's toolbox."""
    if not (settings.domain_guests or settings.domain_strangers):
        return []
    rng = Random(f"{seed}:domain guests")
    boxes = training_toolboxes()
    return [
        *guest_queries(toolbox, boxes, settings.domain_guests, rng),
        *stranger_queries(toolbox, boxes, settings.domain_strangers, encoder, rng),
    ]


def corpus_examples(
    settings: CorpusSettings, tevo: TevoSettings, ttg: TtgSettings, encoder: Encoder, *, seed: int
) -> CorpusExamples:
    """Return the training and validation examples of the corpus; none if ``copies`` is 0."""
    if not settings.copies:
        return CorpusExamples([], [], {})

    def make_examples(
        box: CorpusToolbox,
        queries: Sequence[AnnotatedQuery],
        copies: int,
        tevo: TevoSettings,
        ttg: TtgSettings,
    ) -> list[TrainingExample]:
        # All messages of the box may be plan cases, also those that are not in ``queries``.
        neighbours = Neighbours([*box.queries, *queries], encoder)
        variation = PromptVariation(box.toolbox, tevo, box.pools, neighbours)
        groups = vary_in_groups(queries, variation, encoder, seed=seed, copies=copies)
        return without_duplicates(
            # Guests of two toolboxes may be the same message, so ids begin with the toolbox's name.
            replace(example, id=f"{box.name}:{example.id}@{copy}")
            for copy, group, rng in groups
            for varied in group
            for example in task_examples(varied, ttg, rng)
        )

    boxes = training_toolboxes()
    train: list[TrainingExample] = []
    all_queries: list[AnnotatedQuery] = []
    with progress_bar("Making examples of the corpus", len(boxes)) as advance:
        for index, box in enumerate(boxes):
            rng = Random(f"{seed}:corpus:{box.name}")
            others = [*boxes[:index], *boxes[index + 1 :]]
            queries = [
                *box.queries,
                *guest_queries(box.toolbox, others, settings.guests, rng),
                *stranger_queries(box.toolbox, others, settings.strangers, encoder, rng),
                *joined_queries(box.queries, settings.composed, rng),
                *decoy_queries(box.queries, settings.decoys, rng),
            ]
            all_queries += queries
            train += make_examples(box, queries, settings.copies, tevo, ttg)
            advance(1)
    no_tevo, plan_only = tevo.model_copy(update={"enabled": False}), TtgSettings(tasks_per_query=1)
    validation = []
    for box in read_corpus("validation"):
        count = min(settings.validation, len(box.queries))
        sample = Random(f"{seed}:held:{box.name}").sample(box.queries, count)
        validation += make_examples(box, sample, 1, no_tevo, plan_only)
    manifest_entry = {
        "toolboxes": len(boxes),
        "queries": len(all_queries),
        "examples": len(train),
        "validation": len(validation),
        "sha256": hashlib.sha256(queries_hash(all_queries).encode()).hexdigest(),
    }
    return CorpusExamples(train, validation, manifest_entry)
