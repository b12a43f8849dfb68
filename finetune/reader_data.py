"""Converts annotated queries to training data for the plan reader's network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.finetune.neighbours import present_fields
from casewright.planner import AnnotatedQuery
from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import PLACEHOLDER
from casewright.planner.reader_input import ReaderInput, Span, read_input
from casewright.planner.reader_weights import TemplateExample
from casewright.planner.sub_queries import SubQuery, sub_queries_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: A template (a sub-query without its literals) is trained if this many sub-queries have it.
MIN_SUB_QUERIES = 2


@dataclass(frozen=True, slots=True)
class AddedToolExample:
    """A tool that a record adds to the toolbox: its name, and its example as the reader's input."""

    tool: str
    input: ReaderInput


@dataclass(frozen=True, slots=True)
class TrainingQuery:
    """The training data of one query; its sub-queries are in the plan's order.

    Attributes:
        input: The question and the context as tokens.
        templates: For each sub-query, its template's number from 1, or ``None`` if untrained.
        added_tools: For each sub-query, the added tool that it calls, or an empty text.
        spans: For each sub-query, the span of each literal; ``None`` for a literal without a span.
        admitted_templates: Numbers of the templates that the record's toolbox and context allow.
        examples: The examples of the tools that the record adds.
    """

    input: ReaderInput
    templates: tuple[int | None, ...]
    added_tools: tuple[str, ...]
    spans: tuple[tuple[Span | None, ...], ...]
    admitted_templates: frozenset[int]
    examples: tuple[AddedToolExample, ...]


def trained_templates(queries: Sequence[AnnotatedQuery]) -> list[TemplateExample]:
    """Return an example of every trained template; the most frequent template comes first.

    Sub-queries with tools that a record adds are omitted, since other records lack these tools.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, TemplateExample] = {}
    for query in queries:
        for index, (sub_query, _) in enumerate(sub_queries_of(query.plan, query.query)):
            if _added_tool_names(query).isdisjoint(sub_query.tools):
                counts[sub_query.template] += 1
                example = TemplateExample(str(query.plan), index, query.query)
                examples.setdefault(sub_query.template, example)
    frequent_templates = [t for t, count in counts.most_common() if count >= MIN_SUB_QUERIES]
    return [examples[template] for template in frequent_templates]


def _added_tool_names(query: AnnotatedQuery) -> set[str]:
    return {str(tool.get("name", "")) for tool in query.record.tools_extra}


def training_queries(
    queries: Sequence[AnnotatedQuery], templates: Sequence[TemplateExample], tokenizer: Tokenizer
) -> list[TrainingQuery]:
    """Return the training data of each query whose plan has sub-queries."""
    trained = {number: example.read() for number, example in enumerate(templates, 1)}
    number_of_template = {sub_query.template: number for number, sub_query in trained.items()}
    results = []
    for query in queries:
        pairs = sub_queries_of(query.plan, query.query)
        if not pairs:
            continue
        reader_input = read_input(tokenizer, query.query, query.record.context)
        added = _added_tool_names(query)
        results.append(
            TrainingQuery(
                input=reader_input,
                templates=tuple(number_of_template.get(s.template) for s, _ in pairs),
                added_tools=tuple(next((t for t in s.tools if t in added), "") for s, _ in pairs),
                spans=tuple(tuple(map(reader_input.find, texts)) for _, texts in pairs),
                admitted_templates=frozenset(n for n, s in trained.items() if _admits(query, s)),
                examples=tuple(_added_tool_examples(query, tokenizer)),
            )
        )
    return results


def _admits(query: AnnotatedQuery, sub_query: SubQuery) -> bool:
    fields = present_fields(query.record.context).keys()
    has_tools = set(query.record.tools_removed).isdisjoint(sub_query.tools)
    return has_tools and fields >= sub_query.context_fields()


def _added_tool_examples(query: AnnotatedQuery, tokenizer: Tokenizer) -> Iterator[AddedToolExample]:
    """Yield each added tool's example; without one, the description serves as the question."""
    for tool in query.record.tools_extra:
        example = tool.get("example") or {}
        question = str(example.get("query") or tool.get("description") or tool["name"])
        context: dict[str, str] = {}
        if example.get("plan"):
            pairs = sub_queries_of(parse_plan(str(example["plan"])), question)
            context = {field: PLACEHOLDER for sub, _ in pairs for field in sub.context_fields()}
        yield AddedToolExample(str(tool["name"]), read_input(tokenizer, question, context))
