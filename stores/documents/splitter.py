"""A document's parts as chunks, each with where it stands.

Markdown is cut at its headings, source code at its definitions; what is long is cut further: prose
between sentences by LlamaIndex's ``SentenceSplitter``, code, data, lists and tables between lines.
Chunks do not overlap: the ones before and after are found by their positions. The time that it
takes grows with the text's length, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from casewright.stores.documents.code_outline import outline
from casewright.stores.documents.line_groups import (
    Lines,
    Sizes,
    cut,
    grouped,
    line_sizes,
    paragraphs,
)
from casewright.stores.documents.long_text import passages
from casewright.stores.documents.markdown_sections import sections
from casewright.stores.documents.reader import Document, Part
from casewright.stores.documents.text_size import MOST

#: What a list, a table or a quotation begins a line with.
LISTED = re.compile(r"\s*(?:[-*+|>•]|\d+[.)])\s")
#: A line of code that says nothing by itself: it closes what is above it.
CLOSES = re.compile(r"\W*+(?:end|endif|fi|done|esac)?\W*+")
#: The head of a class that has fewer tokens goes with the first definition in it.
HEAD = 16
#: Between the parts of a chunk's place: document, section, sub-section.
PATH = " › "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    Attributes:
        text: What it says.
        title: What the document calls itself; empty where that is not known.
        heading: The headings above it.
        symbol: The function, method or class that it is of.
        page: Its page, from 1.
        first_line: Its first line in the file, from 1; ``None`` where a file has no lines.
        last_line: Its last line.
    """

    text: str
    title: str = ""
    heading: tuple[str, ...] = ()
    symbol: str = ""
    page: int | None = None
    first_line: int | None = None
    last_line: int | None = None


def split(document: Document) -> list[Chunk]:
    """Return a document's chunks in their order; none where it has no text."""
    chunks: list[Chunk] = []
    for part in document.parts:
        match document.kind.name:
            case "code":
                made = _code(part, document.kind.language)
            case "markdown" | "html":
                made = _sections(part)
            case "data":
                made = _data(part)
            case _:
                made = _text(part)
        chunks += [replace(chunk, page=part.page) for chunk in made]
    title = document.title
    if not title:
        title = next((chunk.heading[0] for chunk in chunks if chunk.heading), "")
    if not document.has_lines:
        chunks = [replace(chunk, first_line=None, last_line=None) for chunk in chunks]
    return [replace(chunk, title=title) for chunk in chunks]


def _passages(lines: Sequence[str], sizes: Sizes, within: Lines) -> Iterator[Chunk]:
    """Cut prose."""
    for group in grouped(lines, sizes, within):
        if group.size(sizes) <= MOST:
            yield _chunk(lines, group)
        elif LISTED.match(lines[list(paragraphs(lines, group))[-1].first]):
            yield from _cut(lines, sizes, group)
        else:
            yield from _sentences(group.of(lines), group.first)


def _sentences(text: str, before: int) -> Iterator[Chunk]:
    """Cut a text; ``before`` is how many lines of the file stand before it."""
    end = 0
    for piece in passages(text):
        # Pieces are parts of the text without the white space between them.
        at = text.index(piece, end)
        first = before + text.count("\n", end, at) + 1
        before = first - 1 + piece.count("\n")
        yield Chunk(piece, first_line=first, last_line=before + 1)
        end = at + len(piece)


def _cut(lines: Sequence[str], sizes: Sizes, within: Lines) -> Iterator[Chunk]:
    for part in cut(lines, sizes, within):
        if part.size(sizes) <= MOST:
            yield _chunk(lines, part)
        else:
            yield from _sentences(part.of(lines), part.first)


def _chunk(lines: Sequence[str], part: Lines) -> Chunk:
    return Chunk(part.of(lines), first_line=part.first + 1, last_line=part.last + 1)


def _text(part: Part) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    return _passages(lines, line_sizes(lines), Lines(0, len(lines) - 1))


def _data(part: Part) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    return _cut(lines, line_sizes(lines), Lines(0, len(lines) - 1))


def _sections(part: Part) -> Iterator[Chunk]:
    # A heading is shown with a space, whatever stands there.
    lines = re.sub(r"(?m)^(#+)[^\S\n]", r"\1 ", part.text).split("\n")
    sizes, made = line_sizes(lines), list(sections(lines))
    for section, following in zip_longest(made, made[1:]):
        # What is only a heading is told by the sections below it.
        body = any(line.strip() for line in lines[section.lines.first + 1 : section.lines.last + 1])
        below = following is not None and len(following.above) > len(section.above)
        if section.heading and not body and below:
            continue
        heading = (*section.above, section.heading) if section.heading else section.above
        for chunk in _passages(lines, sizes, section.lines):
            yield replace(chunk, heading=heading)


def _code(part: Part, language: str) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    sizes = line_sizes(lines)
    owner = [""] * len(lines)
    definitions = outline(part.text, language)
    for definition in definitions:
        span = definition.lines
        owner[span.first : span.last + 1] = [definition.symbol] * (span.last + 1 - span.first)
    begun = {definition.lines.first for definition in definitions}
    for number in range(1, len(lines)):
        if number not in begun and CLOSES.fullmatch(lines[number]):
            owner[number] = owner[number - 1]
    first = 0
    for number in range(1, len(lines) + 1):
        if number < len(lines) and owner[number] == owner[number - 1]:
            continue
        of = owner[number - 1]
        span = Lines(first, number - 1)
        # ``class A:`` says nothing by itself, and something about its first method.
        if number < len(lines) and owner[number].startswith(f"{of}.") and span.size(sizes) < HEAD:
            continue
        for chunk in _cut(lines, sizes, span):
            yield replace(chunk, symbol=of)
        first = number
