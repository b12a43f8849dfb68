"""Splitting of a document's parts into chunks, each with its position.

Markdown, and formats that were converted to it, are cut at headings, source code at definitions.
Longer parts are cut further: prose between sentences by LlamaIndex's ``SentenceSplitter``; code,
data, lists and tables between lines. Chunks do not overlap; a chunk's neighbours are found by
position. The time is linear in the length of any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from casewright.stores.documents.code_outline import outline
from casewright.stores.documents.reader import Document, Part
from casewright.stores.documents.text_size import (
    FENCE,
    FENCES,
    MAX_CHUNK_TOKENS,
    Lines,
    Sizes,
    cut,
    grouped,
    line_sizes,
    paragraphs,
    passages,
    text_sizes,
)

#: The start of a list item, a table row or a block quote.
STRUCTURED_LINE = re.compile(r"\s*(?:[-*+|>•]|\d+[.)])\s")
#: A line of code that only closes a block.
CLOSES = re.compile(r"\W*+(?:end|endif|fi|done|esac)?\W*+")
#: A Markdown heading; CommonMark allows six levels.
HEADING = re.compile(r"#{1,6}(?=\s)")
#: A class head with fewer tokens than this is joined with the first definition inside.
HEAD = 16
#: Separator of the parts of a chunk's title: document, section, sub-section.
PATH = " › "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    Attributes:
        text: Its text.
        title: The document's title; empty without one.
        heading: The headings above it.
        symbol: The function, method or class that contains it.
        page: Its page, from 1.
        first_line: Its first line in the file, from 1; ``None`` for a file without lines.
        last_line: Its last line.
    """

    text: str
    title: str = ""
    heading: tuple[str, ...] = ()
    symbol: str = ""
    page: int | None = None
    first_line: int | None = None
    last_line: int | None = None


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with the lines before the next heading; the first section may have no heading."""

    lines: Lines
    above: tuple[str, ...] = ()
    heading: str = ""


def split(document: Document) -> list[Chunk]:
    """Return a document's chunks in order; an empty list for an empty document."""
    chunks: list[Chunk] = []
    for part in document.parts:
        lines = part.text.split("\n")
        everything = Lines(0, len(lines) - 1)
        match document.kind.name:
            case "code":
                pieces = _code(part.text, document.kind.language)
            case "markdown" | "rst" | "html" | "docx" | "notebook":
                pieces = _sections(part)
            case "table" | "json" | "data":
                pieces = _line_chunks(lines, line_sizes(lines), everything)
            case _:
                pieces = _prose_chunks(lines, line_sizes(lines), everything)
        chunks += [_placed(chunk, part) for chunk in pieces]
    title = document.title
    if not title:
        title = next((chunk.heading[0] for chunk in chunks if chunk.heading), "")
    if not document.has_lines:
        chunks = [replace(chunk, first_line=None, last_line=None) for chunk in chunks]
    return [replace(chunk, title=title) for chunk in chunks]


def _placed(chunk: Chunk, part: Part) -> Chunk:
    """Return a chunk with the page of its part and the line numbers of the file."""
    if part.lines and chunk.first_line and chunk.last_line:
        first, last = (part.lines[line - 1] for line in (chunk.first_line, chunk.last_line))
        chunk = replace(chunk, first_line=first, last_line=last)
    return replace(chunk, page=part.page)


def _prose_chunks(lines: Sequence[str], sizes: Sizes, within: Lines) -> Iterator[Chunk]:
    for group in grouped(lines, sizes, within):
        if group.size(sizes) <= MAX_CHUNK_TOKENS:
            yield _chunk(lines, group)
            continue
        last_paragraph_line = lines[list(paragraphs(lines, group))[-1].first]
        if STRUCTURED_LINE.match(last_paragraph_line) or last_paragraph_line.lstrip().startswith(
            FENCE
        ):
            yield from _line_chunks(lines, sizes, group)
        else:
            yield from _sentence_chunks(group.of(lines), group.first)


def _sentence_chunks(text: str, lines_before: int) -> Iterator[Chunk]:
    """Cut a text between sentences; ``lines_before`` of the file precede it."""
    end = 0
    for piece in passages(text):
        # Pieces are parts of the text without the white space between them.
        at = text.index(piece, end)
        first = lines_before + text.count("\n", end, at) + 1
        lines_before = first - 1 + piece.count("\n")
        yield Chunk(piece, first_line=first, last_line=lines_before + 1)
        end = at + len(piece)


def _line_chunks(lines: Sequence[str], sizes: Sizes, within: Lines) -> Iterator[Chunk]:
    for span in cut(lines, sizes, within):
        if span.size(sizes) <= MAX_CHUNK_TOKENS:
            yield _chunk(lines, span)
        else:
            yield from _sentence_chunks(span.of(lines), span.first)


def _chunk(lines: Sequence[str], span: Lines) -> Chunk:
    return Chunk(span.of(lines), first_line=span.first + 1, last_line=span.last + 1)


def _sections(part: Part) -> Iterator[Chunk]:
    # One space follows a heading's marks, whatever white space the file has.
    lines = re.sub(r"(?m)^(#+)[^\S\n]", r"\1 ", part.text).split("\n")
    sizes, sections = line_sizes(lines), list(_markdown_sections(lines))
    for section, following in zip_longest(sections, sections[1:]):
        # A heading without text gives no chunk: the heading paths of its sub-sections include it.
        body = any(line.strip() for line in lines[section.lines.first + 1 : section.lines.last + 1])
        below = following is not None and len(following.above) > len(section.above)
        if section.heading and not body and below:
            continue
        heading = (*section.above, section.heading) if section.heading else section.above
        fence = ""
        chunks = list(_prose_chunks(lines, sizes, section.lines))
        for chunk in chunks:
            opening_fence = f"{fence}\n" if fence else ""
            for line in chunk.text.split("\n"):
                if line.lstrip().startswith(FENCE):
                    fence = "" if fence else line.strip()
            # Each piece of a code block that is cut gets fences of its own.
            goes_on = fence and chunk is not chunks[-1]
            text = (
                f"{opening_fence}{chunk.text}\n{FENCE}" if goes_on else opening_fence + chunk.text
            )
            if (goes_on or opening_fence) and text_sizes([text])[0] > MAX_CHUNK_TOKENS + FENCES:
                text = chunk.text
            yield replace(chunk, text=text, heading=heading)


def _markdown_sections(lines: Sequence[str]) -> Iterator[_Section]:
    """Yield the non-blank sections of a text, in one pass.

    LlamaIndex's parser makes an object with a digest for each section, which takes minutes for a
    file with a heading in every line.
    """
    open_: list[tuple[int, str]] = []
    section, fenced = _Section(Lines(0, -1)), False
    for number, line in enumerate([*lines, "# "]):
        marks = HEADING.match(line) if not fenced or number == len(lines) else None
        if line.lstrip().startswith(FENCE):
            fenced = not fenced
        if marks is None:
            continue
        first = section.lines.first
        if any(line.strip() for line in lines[first:number]):
            yield replace(section, lines=Lines(first, number - 1))
        while open_ and open_[-1][0] >= len(marks[0]):
            open_.pop()
        above = tuple(text for _, text in open_ if text)
        heading = line.lstrip("#").strip().rstrip("#").rstrip()
        section = _Section(Lines(number, number), above, heading)
        open_.append((len(marks[0]), heading))


def _code(text: str, language: str) -> Iterator[Chunk]:
    lines = text.split("\n")
    sizes = line_sizes(lines)
    owner = [""] * len(lines)
    definitions = outline(text, language)
    for definition in definitions:
        span = definition.lines
        owner[span.first : span.last + 1] = [definition.symbol] * (span.last + 1 - span.first)
    starts = {definition.lines.first for definition in definitions}
    for number in range(1, len(lines)):
        if number not in starts and CLOSES.fullmatch(lines[number]):
            owner[number] = owner[number - 1]
    first = 0
    for number in range(1, len(lines) + 1):
        if number < len(lines) and owner[number] == owner[number - 1]:
            continue
        symbol = owner[number - 1]
        span = Lines(first, number - 1)
        # ``class A:`` alone carries no information, but it helps to understand the first method.
        inside = number < len(lines) and owner[number].startswith(f"{symbol}.")
        if inside and span.size(sizes) < HEAD:
            continue
        for chunk in _line_chunks(lines, sizes, span):
            yield replace(chunk, symbol=symbol)
        first = number
