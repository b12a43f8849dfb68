"""Measures texts in tokens of the packaged encoder, and splits texts by this size.

Paragraphs form groups. A group ends as soon as it is long enough, not when it is full. If a
paragraph is later inserted, few groups change, and most chunks need not be encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from casewright.stores.encoders.minilm import packaged_minilm

if TYPE_CHECKING:
    from llama_index.core.node_parser import SentenceSplitter
    from tokenizers import Tokenizer

#: Maximum number of tokens of a chunk: the encoder reads 256, two of which are special tokens.
MAX_CHUNK_TOKENS = 240
#: Maximum number of tokens of the fences that are added around a part of a code block.
FENCE_TOKENS = 14
#: A text counts as at least one token per this number of letters: the model reads a word of over
#: 100 letters as one token. English has 4 to 5 letters per token, source code 3.
MAX_LETTERS_PER_TOKEN = 8
#: Maximum number of texts that are tokenized together, since tokens take memory.
MAX_BATCH_TEXTS = 2000
#: A longer text is tokenized, and cut into sentences, in parts of at most this many letters.
MAX_PART_LETTERS = 20_000
#: A run of many letters without spaces is not a word, and is cut into pieces between letters.
LONG_WORD = re.compile(r"(\S{200,})")
RUN_PIECE = re.compile(r"\S{1,60}\s*|\s+")


def text_sizes(texts: Sequence[str]) -> list[int]:
    """Return each text's number of tokens: at most the sum of the numbers of its lines."""
    sizes: list[int] = []
    for start in range(0, len(texts), MAX_BATCH_TEXTS):
        sizes += _batch_sizes(texts[start : start + MAX_BATCH_TEXTS])
    return sizes


def text_pieces(text: str) -> Iterator[str]:
    """Yield pieces that fit into a chunk, cut between sentences, else words, else letters."""
    offset = 0
    # The sentence splitter gets parts of bounded length, so that the time is linear.
    while offset < len(text):
        end = _part_end(text, offset)
        for piece in LONG_WORD.split(text[offset:end]):
            if LONG_WORD.match(piece):
                yield from _cut_by_letters(piece)
            elif piece.strip():
                yield from _sentence_splitter().split_text(piece)
        offset = end


def _part_end(text: str, offset: int) -> int:
    end = offset + MAX_PART_LETTERS
    if end >= len(text):
        return len(text)
    for mark in (". ", "\n", " "):
        if (start := text.rfind(mark, offset + MAX_PART_LETTERS // 2, end)) >= 0:
            return start + len(mark)
    return end


def _cut_by_letters(text: str) -> Iterator[str]:
    pieces = RUN_PIECE.findall(text)
    start, total = 0, 0
    # The last size, for no piece, is so large that it ends the last passage.
    for number, size in enumerate([*text_sizes(pieces), MAX_CHUNK_TOKENS + 1]):
        if total + size > MAX_CHUNK_TOKENS:
            if passage := "".join(pieces[start:number]).strip():
                yield passage
            start, total = number, 0
        total += size


@cache
def _sentence_splitter() -> SentenceSplitter:
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.node_parser.text.utils import split_by_sentence_tokenizer_internal
    from nltk.tokenize import PunktSentenceTokenizer

    punkt = PunktSentenceTokenizer()
    # The splitter measures a text by the length of the tokenizer's result. The default function for
    # sentences would load NLTK's stop words; uv installs these as hard links, which NLTK refuses.
    return SentenceSplitter(
        chunk_size=MAX_CHUNK_TOKENS,
        chunk_overlap=0,
        tokenizer=lambda text: range(text_sizes([text])[0]),
        chunking_tokenizer_fn=lambda text: split_by_sentence_tokenizer_internal(text, punkt),
    )


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _batch_sizes(texts: Sequence[str]) -> list[int]:
    pieces = [
        (number, text[offset : offset + MAX_PART_LETTERS])
        for number, text in enumerate(texts)
        for offset in range(0, len(text), MAX_PART_LETTERS)
    ]
    encodings = _tokenizer().encode_batch_fast([p for _, p in pieces], add_special_tokens=False)
    sizes = [0] * len(texts)
    for (number, piece), tokens in zip(pieces, encodings, strict=True):
        sizes[number] += max(len(tokens), len(piece) // MAX_LETTERS_PER_TOKEN)
    return sizes


#: A group of paragraphs with this many tokens is complete.
GROUP_TOKENS = 96
#: A smaller group is joined with the next paragraph if the paragraph is too long for a chunk; a
#: smaller last group is joined with the group before.
MIN_GROUP_TOKENS = 32
#: The line before and after code in Markdown.
FENCE = "```"
#: A line that closes or continues a block; no range of ``line_ranges`` begins with such a line.
_CLOSING_START = re.compile(r"\s*(?:[)\]}>]|</|end\b|else\b|elif\b|except\b|finally\b|catch\b)")
#: Cumulative sizes of lines in tokens; see ``size_sums``.
SizeSums = Sequence[int]


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines from ``first`` to ``last``, both included, counted from 0."""

    first: int
    last: int

    def text(self, lines: Sequence[str]) -> str:
        """Return the text of these lines."""
        return "\n".join(lines[self.first : self.last + 1])

    def size(self, sums: SizeSums) -> int:
        """Return the size of these lines in tokens."""
        return sums[self.last + 1] - sums[self.first]


def size_sums(lines: Sequence[str]) -> SizeSums:
    """Return the number of tokens before each line and, as the last item, after all lines.

    A non-blank line counts as at least one token, which limits the number of lines in a group.
    """
    pairs = zip(text_sizes(lines), lines, strict=True)
    return list(accumulate((size or bool(line.strip()) for size, line in pairs), initial=0))


def paragraphs(lines: Sequence[str], within: Lines) -> Iterator[Lines]:
    """Yield the paragraphs: a blank line ends a paragraph, except between fences."""
    first, in_fence = None, False
    for number in range(within.first, within.last + 1):
        in_fence ^= lines[number].lstrip().startswith(FENCE)
        if in_fence or lines[number].strip():
            first = number if first is None else first
        elif first is not None:
            yield Lines(first, number - 1)
            first = None
    if first is not None:
        yield Lines(first, within.last)


def paragraph_groups(lines: Sequence[str], sums: SizeSums, within: Lines) -> list[Lines]:
    """Return the paragraphs in groups.

    A group is too long for a chunk only if its last paragraph alone is too long. Such a group may
    begin with a few other words, such as a heading.
    """
    groups: list[Lines] = []
    is_open = False
    for paragraph in paragraphs(lines, within):
        joined_group = Lines(groups[-1].first, paragraph.last) if is_open else paragraph
        if paragraph.size(sums) > MAX_CHUNK_TOKENS:
            can_join = is_open and groups[-1].size(sums) < MIN_GROUP_TOKENS
        else:
            can_join = is_open and joined_group.size(sums) <= MAX_CHUNK_TOKENS
        if can_join:
            groups[-1] = joined_group
        else:
            groups.append(paragraph)
        is_open = groups[-1].size(sums) < GROUP_TOKENS
    if len(groups) > 1 and groups[-1].size(sums) < MIN_GROUP_TOKENS:
        joined_group = Lines(groups[-2].first, groups[-1].last)
        if joined_group.size(sums) <= MAX_CHUNK_TOKENS:
            groups[-2:] = [joined_group]
    return groups


def line_ranges(lines: Sequence[str], sums: SizeSums, within: Lines) -> Iterator[Lines]:
    """Cut lines before low indentations; yield ranges that fit into a chunk or are one line."""
    first = within.first
    while first <= within.last:
        last = first
        while last < within.last and Lines(first, last + 1).size(sums) <= MAX_CHUNK_TOKENS:
            last += 1
        if last < within.last:
            last = _best_end(lines, sums, Lines(first, last))
        if nonblank := [number for number in range(first, last + 1) if lines[number].strip()]:
            yield Lines(nonblank[0], nonblank[-1])
        first = last + 1


def _best_end(lines: Sequence[str], sums: SizeSums, full: Lines) -> int:
    """Return where a full range ends best: before the least indented line of its second half."""
    best_end, min_indent = full.last, None
    for end in range(full.last, full.first - 1, -1):
        if Lines(full.first, end).size(sums) < MAX_CHUNK_TOKENS // 2:
            break
        following = lines[end + 1]
        if not following.strip() or _CLOSING_START.match(following):
            continue
        indent = len(following) - len(following.lstrip())
        if min_indent is None or indent < min_indent:
            best_end, min_indent = end, indent
    return best_end
