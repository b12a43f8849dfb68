"""Drafts messages with plans for human review: variations of examples and annotated queries."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, zip_longest
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.query_writer import RejectReason, SeenQuestions
from casewright.planner import AnnotatedQuery, Literal, Plan, QuestionRef, Step, is_span
from casewright.planner.parser.example_cases import PlanCase, example_cases
from casewright.planner.plan import text_literals, with_literals
from casewright.planner.spans import normalized
from casewright.planner.sub_queries import joined_plan, sub_queries_of
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox

#: Messages that need no tool.
SMALL_TALK = (
    "hello there",
    "thank you, that was all",
    "never mind, I found it myself",
    "what can you do for me",
    "good morning, how are you today",
    "ok, bye",
)
#: Templates that join two messages.
JOIN_TEMPLATES = ("{0}, and {1}", "{0}? Also, {1}", "{0}; besides, {1}")


@dataclass(slots=True)
class ReviewBatch:
    """Records of drafts for human review, and the number of rejected drafts by reason."""

    records: list[dict[str, Any]] = field(default_factory=list)
    rejected: Counter[RejectReason] = field(default_factory=Counter)


def usable_drafts(
    drafts: Iterable[Mapping[str, Any]], toolbox: Toolbox, seen: SeenQuestions, count: int
) -> ReviewBatch:
    """Return the first ``count`` drafts with a valid plan and a message unlike those in ``seen``.

    ``drafts`` have query, context and plan. The messages of the result are added to ``seen``.
    """
    batch = ReviewBatch()
    for draft in drafts:
        if len(batch.records) == count:
            break
        try:
            record = checked_record({"id": message_id("d", draft), **draft}, toolbox, classes=())
        except (PlanError, InputError):
            batch.rejected[RejectReason.INVALID] += 1
            continue
        if (reason := seen.add_new(record["query"])) is None:
            batch.records.append(record)
        else:
            batch.rejected[reason] += 1
    return batch


def message_id(prefix: str, record: Mapping[str, Any]) -> str:
    """Return an id: a prefix, such as "d" for drafts, and a hash of the ``message_key``."""
    key = json.dumps(message_key(record), sort_keys=True)
    return f"{prefix}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def message_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the fields that identify a message: text, context, history and tenant."""
    further_fields = (record.get(name) or None for name in ("context", "history", "tenant"))
    return (normalized(str(record["query"])), *further_fields)


def template_drafts(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery] = (), seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield drafts of five kinds in turn; some may be alike, or have plans that are not valid.

    The kinds are the tools' examples, messages with a replaced text, messages with a replaced
    choice of an enumeration, two joined messages, and small talk. Changed and joined messages are
    made from the examples, and from ``queries`` without history or changed tools. ``seed``
    determines the pairs that are joined, and the templates.
    """
    # The context of an example has only placeholders.
    examples = [replace(case, context={}) for case in example_cases(toolbox)]
    originals = examples + [
        PlanCase(query.query, query.plan, query.record.context)
        for query in queries
        if not (query.record.history or query.record.tools_extra or query.record.tools_removed)
    ]
    draft_kinds = [
        iter(examples),
        _with_new_values(originals, toolbox),
        _with_new_choices(originals, toolbox),
        _joined(originals, toolbox, random.Random(seed)),
        (PlanCase(text, Plan((Step(NO_EVIDENCE.name),)), {}) for text in SMALL_TALK),
    ]
    for draft in filter(None, chain.from_iterable(zip_longest(*draft_kinds))):
        yield {"query": draft.question, "context": dict(draft.context), "plan": str(draft.plan)}


def _with_new_values(drafts: Sequence[PlanCase], toolbox: Toolbox) -> Iterator[PlanCase]:
    """Yield messages in which a text is replaced by another message's text for this parameter."""
    texts_by_parameter: dict[str, list[str]] = defaultdict(list)
    for draft in drafts:
        for _, name, text in text_literals(draft.plan):
            if is_span(text, draft.question) and text not in texts_by_parameter[name]:
                texts_by_parameter[name].append(text)
    for draft in drafts:
        for index, name, text in text_literals(draft.plan):
            if not _choices(toolbox, draft.plan.steps[index], name):
                for other in texts_by_parameter[name]:
                    yield from _replace_text(draft, (index, name), (text, other), (text, other))


def _with_new_choices(drafts: Sequence[PlanCase], toolbox: Toolbox) -> Iterator[PlanCase]:
    """Yield messages with another choice, which a message writes with spaces instead of "_"."""
    for draft in drafts:
        for index, name, text in text_literals(draft.plan):
            for other in _choices(toolbox, draft.plan.steps[index], name):
                words = (text.replace("_", " "), other.replace("_", " "))
                yield from _replace_text(draft, (index, name), (text, other), words)


def _replace_text(
    draft: PlanCase, argument: tuple[int, str], literals: tuple[str, str], words: tuple[str, str]
) -> Iterator[PlanCase]:
    """Yield the draft with a replaced literal in its plan, and replaced words in its message.

    ``argument`` is a step's index and a parameter's name. ``literals`` and ``words`` are pairs
    (old, new). Yield nothing if both literals are equal, or the old words do not occur exactly
    once in the message.
    """
    old, new = literals
    old_words, new_words = words
    pattern = re.compile(rf"(?<!\w){re.escape(old_words)}(?!\w)", re.IGNORECASE)
    if len(pattern.findall(draft.question)) == 1 and old != new:
        question = pattern.sub(lambda _: new_words, draft.question)
        yield replace(draft, question=question, plan=with_literals(draft.plan, {argument: new}))


def _joined(drafts: Sequence[PlanCase], toolbox: Toolbox, rng: random.Random) -> Iterator[PlanCase]:
    """Yield messages that join two drafts whose contexts do not contradict each other."""
    pairs = list(combinations(drafts, 2))
    rng.shuffle(pairs)
    for pair in pairs:
        parts = [part for draft in pair if (part := _question_as_literal(draft, toolbox))]
        first, second = (draft.context for draft in pair)
        if len(parts) < 2 or any(first[name] != second[name] for name in first.keys() & second):
            continue
        sub_queries = [item for part in parts for item in sub_queries_of(part.plan, part.question)]
        message = rng.choice(JOIN_TEMPLATES).format(*(_trimmed(draft.question) for draft in pair))
        yield PlanCase(message, joined_plan(sub_queries), {**first, **second})


def _question_as_literal(draft: PlanCase, toolbox: Toolbox) -> PlanCase | None:
    """Return the draft with the message as a literal wherever the plan refers to ``question``.

    In a joined message, ``question`` would mean both messages. ``None`` if a parameter with this
    reference admits no literal, or the plan calls ``no_evidence``.
    """
    steps = []
    for step in draft.plan.steps:
        if step.tool == NO_EVIDENCE.name:
            return None
        arguments = []
        for name, value in step.arguments:
            if isinstance(value, QuestionRef):
                parameter = _parameter(toolbox, step, name)
                if parameter is None or not {Source.LITERAL, Source.SPAN} & set(parameter.sources):
                    return None
                value = Literal(_trimmed(draft.question))
            arguments.append((name, value))
        steps.append(Step(step.tool, tuple(arguments)))
    return replace(draft, plan=Plan(tuple(steps)))


def _trimmed(text: str) -> str:
    return text.strip().rstrip(".?! ")


def _choices(toolbox: Toolbox, step: Step, parameter_name: str) -> Sequence[str]:
    parameter = _parameter(toolbox, step, parameter_name)
    return () if parameter is None else parameter.choices


def _parameter(toolbox: Toolbox, step: Step, parameter_name: str) -> Parameter | None:
    return toolbox[step.tool].parameter(parameter_name) if step.tool in toolbox else None
