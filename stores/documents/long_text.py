"""A long text cut into passages: between sentences where it has some, else between words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from casewright.stores.documents.text_size import MOST, counted, text_sizes

if TYPE_CHECKING:
    from llama_index.core.node_parser import SentenceSplitter

#: Letters that are cut at a time, so that the time grows with the text and no faster.
PART = 20_000
#: What has so many letters is no word, and cut by letters.
LONG = re.compile(r"(\S{200,})")
PIECE = re.compile(r"\S{1,60}\s*|\s+")


def passages(text: str) -> Iterator[str]:
    """Yield the pieces of a text that are no longer than a chunk, without the space between."""
    at = 0
    while at < len(text):
        end = _part_end(text, at)
        for piece in LONG.split(text[at:end]):
            if LONG.match(piece):
                yield from _words(piece)
            elif piece.strip():
                yield from _sentence_splitter().split_text(piece)
        at = end


def _part_end(text: str, at: int) -> int:
    """Return where a part ends: behind a sentence, else behind a word, else within one."""
    end = at + PART
    if end >= len(text):
        return len(text)
    for mark in (". ", "\n", " "):
        if (found := text.rfind(mark, at + PART // 2, end)) >= 0:
            return found + len(mark)
    return end


def _words(text: str) -> Iterator[str]:
    pieces = PIECE.findall(text)
    sizes = text_sizes(pieces)
    start, size = 0, 0
    for number, own in enumerate([*sizes, MOST + 1]):
        if size + own > MOST:
            if passage := "".join(pieces[start:number]).strip():
                yield passage
            start, size = number, 0
        size += own


@cache
def _sentence_splitter() -> SentenceSplitter:
    from llama_index.core.node_parser import SentenceSplitter

    return SentenceSplitter(chunk_size=MOST, chunk_overlap=0, tokenizer=counted)
