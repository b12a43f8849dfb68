"""Splits a document's parts into chunks, each with its position.

Markdown, and text that was converted to Markdown, is cut at headings; source code is cut at
definitions. Pieces that are too long for a chunk are cut further: prose between sentences by
LlamaIndex's ``SentenceSplitter``, other text between lines. Chunks do not overlap: a search finds
a chunk's neighbours by their positions. For any text, the time is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from casewright.stores.documents import text_size
from casewright.stores.documents.code_outline import outline
from casewright.stores.documents.reader import Document, Part
from casewright.stores.documents.text_size import FENCE, MAX_CHUNK_TOKENS, Lines, SizeSums

#: The start of a list item, a table row or a block quote.
STRUCTURED_LINE = re.compile(r"\s*(?:[-*+|>•]|\d+[.)])\s")
#: A line of code that is blank or only closes a block; it belongs to the definition above it.
CLOSING_LINE = re.compile(r"\W*+(?:end|endif|fi|done|esac)?\W*+")
#: A Markdown heading; CommonMark allows six levels.
HEADING = re.compile(r"#{1,6}(?=\s)")
#: A class head with fewer tokens is joined with the first definition inside.
MIN_HEAD_TOKENS = 16
#: Put between the document's title and each heading, which together are the title of a case.
HEADING_SEPARATOR = " › "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    Attributes:
        text: The passage itself.
        title: The document's title; may be empty.
        headings: The headings above the passage, the outermost first.
        symbol: The function, method or class that contains the passage, such as ``Class.method``.
        page: The passage's page, from 1; ``None`` in a document without pages.
        first_line: The passage's first line in the file, from 1; ``None`` if it is unknown.
        last_line: The passage's last line in the file; ``None`` if it is unknown.
    """

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    symbol: str = ""
    page: int | None = None
    first_line: int | None = None
    last_line: int | None = None


@dataclass(frozen=True, slots=True)
class _Section:
    """A section's lines, its heading (empty before the first heading), and the headings above."""

    lines: Lines
    outer: tuple[str, ...] = ()
    heading: str = ""


def split(document: Document) -> list[Chunk]:
    """Return a document's chunks in order; an empty list for an empty document."""
    chunks: list[Chunk] = []
    for part in document.parts:
        lines = part.text.split("\n")
        all_lines = Lines(0, len(lines) - 1)
        match document.kind.name:
            case "code":
                part_chunks = _code_chunks(part.text, document.kind.language)
            case "markdown" | "rst" | "html" | "docx" | "notebook":
                part_chunks = _section_chunks(part)
            case "table" | "json" | "data":
                part_chunks = _line_chunks(lines, text_size.size_sums(lines), all_lines)
            case _:
                part_chunks = _prose_chunks(lines, text_size.size_sums(lines), all_lines)
        for chunk in part_chunks:
            first, last = chunk.first_line, chunk.last_line
            if not document.has_lines:
                first = last = None
            elif part.line_numbers and first and last:
                first, last = part.line_numbers[first - 1], part.line_numbers[last - 1]
            chunks.append(replace(chunk, page=part.page, first_line=first, last_line=last))
    title = document.title or next((chunk.headings[0] for chunk in chunks if chunk.headings), "")
    return [replace(chunk, title=title) for chunk in chunks]


def _prose_chunks(lines: Sequence[str], sums: SizeSums, within: Lines) -> Iterator[Chunk]:
    for group in text_size.paragraph_groups(lines, sums, within):
        if group.size(sums) <= MAX_CHUNK_TOKENS:
            yield _chunk(lines, group)
            continue
        # Only the last paragraph of a group can be too long; see ``paragraph_groups``.
        first_line = lines[list(text_size.paragraphs(lines, group))[-1].first]
        if STRUCTURED_LINE.match(first_line) or first_line.lstrip().startswith(FENCE):
            yield from _line_chunks(lines, sums, group)
        else:
            yield from _sentence_chunks(group.text(lines), group.first)


def _sentence_chunks(text: str, lines_before: int) -> Iterator[Chunk]:
    """Cut a text between sentences; ``lines_before`` is the number of lines before the text."""
    end, last_line = 0, lines_before + 1
    for piece in text_size.text_pieces(text):
        # Pieces are parts of the text without the white space between them.
        start = text.index(piece, end)
        first_line = last_line + text.count("\n", end, start)
        last_line = first_line + piece.count("\n")
        yield Chunk(piece, first_line=first_line, last_line=last_line)
        end = start + len(piece)


def _line_chunks(lines: Sequence[str], sums: SizeSums, within: Lines) -> Iterator[Chunk]:
    for span in text_size.line_ranges(lines, sums, within):
        if span.size(sums) <= MAX_CHUNK_TOKENS:
            yield _chunk(lines, span)
        else:
            yield from _sentence_chunks(span.text(lines), span.first)


def _chunk(lines: Sequence[str], span: Lines) -> Chunk:
    return Chunk(span.text(lines), first_line=span.first + 1, last_line=span.last + 1)


def _section_chunks(part: Part) -> Iterator[Chunk]:
    # Put a space after a heading's marks instead of a tab or other white space.
    lines = re.sub(r"(?m)^(#+)[^\S\n]", r"\1 ", part.text).split("\n")
    sums, sections = text_size.size_sums(lines), list(_markdown_sections(lines))
    for section, next_section in zip_longest(sections, sections[1:]):
        # A heading without text makes no chunk: the chunks of the sub-sections have the heading.
        has_text = any(map(str.strip, lines[section.lines.first + 1 : section.lines.last + 1]))
        has_subsections = next_section is not None and len(next_section.outer) > len(section.outer)
        if section.heading and not has_text and has_subsections:
            continue
        headings = (*section.outer, section.heading) if section.heading else section.outer
        # The line that opened the code block around the current line; empty outside code.
        open_fence = ""
        chunks = list(_prose_chunks(lines, sums, section.lines))
        for chunk in chunks:
            prefix = f"{open_fence}\n" if open_fence else ""
            for line in chunk.text.split("\n"):
                if line.lstrip().startswith(FENCE):
                    open_fence = "" if open_fence else line.strip()
            # If a code block is cut, each part gets fences of its own, unless these are too long.
            suffix = f"\n{FENCE}" if open_fence and chunk is not chunks[-1] else ""
            text, limit = prefix + chunk.text + suffix, MAX_CHUNK_TOKENS + text_size.FENCE_TOKENS
            if (prefix or suffix) and text_size.text_sizes([text])[0] > limit:
                text = chunk.text
            yield replace(chunk, text=text, headings=headings)


def _markdown_sections(lines: Sequence[str]) -> Iterator[_Section]:
    """Yield the sections. LlamaIndex's parser would take minutes if all lines were headings."""
    # The level and the text of each heading above the current line.
    open_headings: list[tuple[int, str]] = []
    section, in_fence = _Section(Lines(0, -1)), False
    # The heading that is added at the end completes the last section.
    for number, line in enumerate([*lines, "# "]):
        heading_mark = HEADING.match(line) if not in_fence or number == len(lines) else None
        if line.lstrip().startswith(FENCE):
            in_fence = not in_fence
        if heading_mark is None:
            continue
        first = section.lines.first
        if any(line.strip() for line in lines[first:number]):
            yield replace(section, lines=Lines(first, number - 1))
        while open_headings and open_headings[-1][0] >= len(heading_mark[0]):
            open_headings.pop()
        outer = tuple(text for _, text in open_headings if text)
        heading = line.lstrip("#").strip().rstrip("#").rstrip()
        section = _Section(Lines(number, number), outer, heading)
        open_headings.append((len(heading_mark[0]), heading))


def _code_chunks(text: str, language: str) -> Iterator[Chunk]:
    lines = text.split("\n")
    sums = text_size.size_sums(lines)
    # The symbol of each line.
    symbols = [""] * len(lines)
    definitions = outline(text, language)
    for definition in definitions:
        span = definition.lines
        symbols[span.first : span.last + 1] = [definition.symbol] * (span.last + 1 - span.first)
    starts = {definition.lines.first for definition in definitions}
    for number in range(1, len(lines)):
        if number not in starts and CLOSING_LINE.fullmatch(lines[number]):
            symbols[number] = symbols[number - 1]
    first = 0
    for number, (symbol, next_symbol) in enumerate(pairwise([*symbols, ""]), 1):
        if number < len(lines) and symbol == next_symbol:
            continue
        span = Lines(first, number - 1)
        # ``class A:`` alone makes no useful chunk, but helps to understand the first method.
        if next_symbol.startswith(f"{symbol}.") and span.size(sums) < MIN_HEAD_TOKENS:
            continue
        for chunk in _line_chunks(lines, sums, span):
            yield replace(chunk, symbol=symbol)
        first = number
