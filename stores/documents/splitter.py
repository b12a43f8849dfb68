"""A document's parts as chunks, each with where it stands.

Markdown is cut at its headings by LlamaIndex's ``MarkdownNodeParser``, source code at its
definitions; what is long is cut further: prose between sentences by LlamaIndex's
``SentenceSplitter``, code, data, lists and tables between lines. Chunks do not overlap: the ones
before and after are found by their positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from casewright.stores.documents.code_outline import outline
from casewright.stores.documents.line_groups import Lines, cut, grouped, paragraphs
from casewright.stores.documents.reader import Document, Part
from casewright.stores.documents.text_size import MOST, counted, text_sizes

if TYPE_CHECKING:
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import BaseNode

#: What a list, a table or a quotation begins a line with.
LISTED = re.compile(r"\s*(?:[-*+|>•]|\d+[.)])\s")
#: A line of code that says nothing by itself: it closes what is above it.
CLOSES = re.compile(r"\W*(?:end|endif|fi|done|esac)?\W*")
#: The head of a class that has fewer tokens goes with the first definition in it.
HEAD = 16
#: A heading of Markdown, with what it says.
HEADING = re.compile(r"#+\s+(.*?)\s*#*\s*\Z")
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
                made = _passages(part.text, 0)
        chunks += [replace(chunk, page=part.page) for chunk in made]
    title = document.title
    if not title:
        title = next((chunk.heading[0] for chunk in chunks if chunk.heading), "")
    if not document.has_lines:
        chunks = [replace(chunk, first_line=None, last_line=None) for chunk in chunks]
    return [replace(chunk, title=title) for chunk in chunks]


def _passages(text: str, before: int) -> Iterator[Chunk]:
    """Cut prose; ``before`` is how many lines of the file stand before it."""
    lines = text.split("\n")
    sizes = text_sizes(lines)
    for group in grouped(lines, sizes):
        if group.size(sizes) <= MOST:
            yield _chunk(lines, group, before)
        elif LISTED.match(lines[list(paragraphs(lines, group))[-1].first]):
            yield from _cut(lines, sizes, group, before)
        else:
            yield from _sentences(group.of(lines), before + group.first)


def _sentences(text: str, before: int) -> Iterator[Chunk]:
    end = 0
    for piece in _sentence_splitter().split_text(text):
        # Pieces are parts of the text without the white space between them.
        at = text.index(piece, end)
        first = before + text.count("\n", end, at) + 1
        before = first - 1 + piece.count("\n")
        yield Chunk(piece, first_line=first, last_line=before + 1)
        end = at + len(piece)


@cache
def _sentence_splitter() -> SentenceSplitter:
    from llama_index.core.node_parser import SentenceSplitter

    return SentenceSplitter(chunk_size=MOST, chunk_overlap=0, tokenizer=counted)


def _cut(lines: Sequence[str], sizes: Sequence[int], within: Lines, before: int) -> Iterator[Chunk]:
    for part in cut(lines, sizes, within):
        if part.size(sizes) <= MOST:
            yield _chunk(lines, part, before)
        else:
            yield from _sentences(part.of(lines), before + part.first)


def _chunk(lines: Sequence[str], part: Lines, before: int) -> Chunk:
    return Chunk(
        part.of(lines), first_line=before + part.first + 1, last_line=before + part.last + 1
    )


def _data(part: Part) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    return _cut(lines, text_sizes(lines), Lines(0, len(lines) - 1), 0)


def _sections(part: Part) -> Iterator[Chunk]:
    from llama_index.core.node_parser import MarkdownNodeParser
    from llama_index.core.schema import Document as TextDocument

    # A heading may hold any letter but the end of its line.
    parser = MarkdownNodeParser(header_path_separator="\n", include_prev_next_rel=False)
    # It writes a heading anew, with a space: only what has one can be found again.
    text = re.sub(r"(?m)^(#+)[^\S\n]", r"\1 ", part.text)
    end = before = 0
    sections = parser.get_nodes_from_documents([TextDocument(text=text)])
    for section, following in zip_longest(sections, sections[1:]):
        said = section.get_content()
        at = text.index(said, end)
        before += text.count("\n", end, at)
        head, _, body = said.partition("\n")
        own = HEADING.match(head)
        above = _above(section)
        # What is only a heading is told by the sections below it.
        if not (own and not body and following and len(_above(following)) > len(above)):
            for chunk in _passages(said, before):
                yield replace(chunk, heading=(*above, own[1]) if own and own[1] else above)
        before += said.count("\n")
        end = at + len(said)


def _above(section: BaseNode) -> tuple[str, ...]:
    """Return the headings above a section, without its own."""
    found = (HEADING.match(f"# {one}") for one in section.metadata["header_path"].split("\n"))
    return tuple(heading[1] for heading in found if heading and heading[1])


def _code(part: Part, language: str) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    sizes = text_sizes(lines)
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
        for chunk in _cut(lines, sizes, span, 0):
            yield replace(chunk, symbol=of)
        first = number
