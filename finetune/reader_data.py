"""Annotated queries as the reader's network learns from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.planner import AnnotatedQuery
from casewright.planner.asks import Ask, asks_of
from casewright.planner.parse import parse_plan
from casewright.planner.reader_input import ReaderInput, read_input
from casewright.planner.reader_weights import FormExample

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]
#: A form of fewer asks is not trained: one example teaches no more than the example itself.
LEAST = 2


@dataclass(frozen=True, slots=True)
class Example:
    """The example of a tool that only some requests have, with the tool's name."""

    tool: str
    read: ReaderInput


@dataclass(frozen=True, slots=True)
class Lesson:
    """One query to learn from.

    Attributes:
        forms: The number of each ask's form, in order; ``None`` for one that is not trained.
        tools: For an ask by a tool of this record only: its name; else empty.
        spans: Where each ask's literals stand; ``None`` where they are no span.
        admitted: Numbers of the forms that the record's toolbox and context allow.
    """

    read: ReaderInput
    forms: tuple[int | None, ...]
    tools: tuple[str, ...]
    spans: tuple[tuple[Span | None, ...], ...]
    admitted: frozenset[int]
    examples: tuple[Example, ...]


def trained_forms(queries: Sequence[AnnotatedQuery]) -> list[FormExample]:
    """Return an example of every form that is frequent enough, the most frequent form first.

    Asks by a record's own tools are left out: another record has other tools.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, FormExample] = {}
    for query in queries:
        own = own_tools(query)
        for index, (ask, _) in enumerate(asks_of(query.plan, query.query)):
            if own.isdisjoint(ask.tools):
                counts[ask.form] += 1
                examples.setdefault(ask.form, FormExample(str(query.plan), index, query.query))
    return [examples[form] for form, count in counts.most_common() if count >= LEAST]


def own_tools(query: AnnotatedQuery) -> set[str]:
    """Return the names of the tools that a record brings along."""
    return {str(tool.get("name", "")) for tool in query.record.tools_extra}


def lessons(
    queries: Sequence[AnnotatedQuery], forms: Sequence[FormExample], tokenizer: Tokenizer
) -> list[Lesson]:
    """Turn queries to lessons; those whose plan has no asks are left out."""
    known = [form.read() for form in forms]
    numbers = {ask.form: number for number, ask in enumerate(known, 1)}
    results = []
    for query in queries:
        read = read_input(tokenizer, query.query, query.record.context)
        asks = asks_of(query.plan, query.query)
        if not asks:
            continue
        own = own_tools(query)
        results.append(
            Lesson(
                read,
                tuple(numbers.get(ask.form) for ask, _ in asks),
                tuple(next((t for t in ask.tools if t in own), "") for ask, _ in asks),
                tuple(tuple(read.find(text) for text in texts) for _, texts in asks),
                frozenset(n for n, ask in enumerate(known, 1) if _allowed(ask, query)),
                tuple(_examples(query, tokenizer)),
            )
        )
    return results


def _allowed(ask: Ask, query: AnnotatedQuery) -> bool:
    record = query.record
    return not set(record.tools_removed) & set(ask.tools) and all(
        record.context.get(field) is not None for field in ask.context_fields()
    )


def _examples(query: AnnotatedQuery, tokenizer: Tokenizer) -> list[Example]:
    results = []
    for tool in query.record.tools_extra:
        example = tool.get("example") or {}
        question = str(example.get("query") or tool.get("description") or tool["name"])
        context: dict[str, str] = {}
        if example.get("plan"):
            asks = asks_of(parse_plan(str(example["plan"])), question)
            context = {field: "given" for ask, _ in asks for field in ask.context_fields()}
        results.append(Example(str(tool["name"]), read_input(tokenizer, question, context)))
    return results
