"""Annotated queries as training data for the reader's network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.planner import AnnotatedQuery
from casewright.planner.parse import parse_plan
from casewright.planner.reader_input import ReaderInput, Span, read_input
from casewright.planner.reader_weights import TemplateExample
from casewright.planner.sub_queries import SubQuery, sub_queries_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Minimum number of sub-queries of a trained template; a rarer one is not worth training.
LEAST = 2


@dataclass(frozen=True, slots=True)
class OwnToolExample:
    """The example of a tool that only some requests have, and the tool's name."""

    tool: str
    read: ReaderInput


@dataclass(frozen=True, slots=True)
class Lesson:
    """The training data of one query; its sub-queries are in the plan's order.

    Attributes:
        templates: The number of each sub-query's template; ``None`` for an untrained template.
        tools: For each sub-query, its tool that only this record has, or an empty text.
        spans: For each sub-query, the words of its literals; ``None`` for one without a span.
        admitted: Numbers of the templates that the record's toolbox and context allow.
    """

    read: ReaderInput
    templates: tuple[int | None, ...]
    tools: tuple[str, ...]
    spans: tuple[tuple[Span | None, ...], ...]
    admitted: frozenset[int]
    examples: tuple[OwnToolExample, ...]


def trained_templates(queries: Sequence[AnnotatedQuery]) -> list[TemplateExample]:
    """Return an example of every template that is frequent enough, the most frequent first.

    Sub-queries with tools that only a record has are omitted: another record has other tools.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, TemplateExample] = {}
    for query in queries:
        own = _own_tools(query)
        for index, (part, _) in enumerate(sub_queries_of(query.plan, query.query)):
            if own.isdisjoint(part.tools):
                counts[part.template] += 1
                example = TemplateExample(str(query.plan), index, query.query)
                examples.setdefault(part.template, example)
    return [examples[template] for template, count in counts.most_common() if count >= LEAST]


def _own_tools(query: AnnotatedQuery) -> set[str]:
    return {str(tool.get("name", "")) for tool in query.record.tools_extra}


def lessons(
    queries: Sequence[AnnotatedQuery], templates: Sequence[TemplateExample], tokenizer: Tokenizer
) -> list[Lesson]:
    """Return the training data of each query whose plan has sub-queries."""
    trained = [example.read() for example in templates]
    numbers = {part.template: number for number, part in enumerate(trained, 1)}
    results = []
    for query in queries:
        parts = sub_queries_of(query.plan, query.query)
        if not parts:
            continue
        read = read_input(tokenizer, query.query, query.record.context)
        own = _own_tools(query)
        results.append(
            Lesson(
                read,
                tuple(numbers.get(part.template) for part, _ in parts),
                tuple(next((t for t in part.tools if t in own), "") for part, _ in parts),
                tuple(tuple(read.find(text) for text in texts) for _, texts in parts),
                frozenset(n for n, part in enumerate(trained, 1) if _allowed(part, query)),
                tuple(_examples(query, tokenizer)),
            )
        )
    return results


def _allowed(part: SubQuery, query: AnnotatedQuery) -> bool:
    record = query.record
    return not set(record.tools_removed) & set(part.tools) and all(
        record.context.get(field) is not None for field in part.context_fields()
    )


def _examples(query: AnnotatedQuery, tokenizer: Tokenizer) -> Iterator[OwnToolExample]:
    for tool in query.record.tools_extra:
        example = tool.get("example") or {}
        question = str(example.get("query") or tool.get("description") or tool["name"])
        context: dict[str, str] = {}
        if example.get("plan"):
            parts = sub_queries_of(parse_plan(str(example["plan"])), question)
            context = {field: "given" for part, _ in parts for field in part.context_fields()}
        yield OwnToolExample(str(tool["name"]), read_input(tokenizer, question, context))
