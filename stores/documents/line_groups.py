"""Lines of a text put into groups that are no longer than a chunk may be.

A group ends as soon as it is long enough, not when it is as full as can be: a paragraph put in
before it moves few ends, and what was encoded of the rest of the file stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from casewright.stores.documents.text_size import MOST, text_sizes

#: A group of this many tokens ends with its paragraph.
ENOUGH = 96
#: A last group below this goes with the one before it, a first one with a long paragraph.
FEW = 32
#: No part begins with such a line: it closes what is open.
_CLOSING = re.compile(r"\s*(?:[)\]}>]|</|end\b|else\b|elif\b|except\b|finally\b|catch\b)")


#: How many tokens stand before each line of a text, and behind its last one; see ``line_sizes``.
Sizes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines from ``first`` to ``last``, both included, counted from 0."""

    first: int
    last: int

    def of(self, lines: Sequence[str]) -> str:
        """Return the text of these lines."""
        return "\n".join(lines[self.first : self.last + 1])

    def size(self, sizes: Sizes) -> int:
        """Return how many tokens they have."""
        return sizes[self.last + 1] - sizes[self.first]


def line_sizes(lines: Sequence[str]) -> Sizes:
    """Return how many tokens stand before each line, and behind the last; a word has at least one.

    Of lines without one, a group could have any number.
    """
    found = zip(text_sizes(lines), lines, strict=True)
    return list(accumulate((size or bool(line.strip()) for size, line in found), initial=0))


def paragraphs(lines: Sequence[str], within: Lines) -> Iterator[Lines]:
    """Yield the runs of lines that are not blank."""
    first = None
    for number in range(within.first, within.last + 1):
        if lines[number].strip():
            first = number if first is None else first
        elif first is not None:
            yield Lines(first, number - 1)
            first = None
    if first is not None:
        yield Lines(first, within.last)


def grouped(lines: Sequence[str], sizes: Sizes, within: Lines) -> list[Lines]:
    """Put paragraphs together.

    Only one that is too long by itself is longer than a chunk; the few words before it, which may
    be its heading, are with it.
    """
    groups: list[Lines] = []
    open_ = False
    for paragraph in paragraphs(lines, within):
        joined = Lines(groups[-1].first, paragraph.last) if open_ else paragraph
        long = paragraph.size(sizes) > MOST
        if open_ and (groups[-1].size(sizes) < FEW if long else joined.size(sizes) <= MOST):
            groups[-1] = joined
        else:
            groups.append(paragraph)
        open_ = groups[-1].size(sizes) < ENOUGH
    if len(groups) > 1 and groups[-1].size(sizes) < FEW:
        joined = Lines(groups[-2].first, groups[-1].last)
        if joined.size(sizes) <= MOST:
            groups[-2:] = [joined]
    return groups


def cut(lines: Sequence[str], sizes: Sizes, within: Lines) -> Iterator[Lines]:
    """Yield parts no longer than a chunk, each begun at a line that is indented little.

    A line that is too long by itself is a part by itself.
    """
    first = within.first
    while first <= within.last:
        last = first
        while last < within.last and Lines(first, last + 1).size(sizes) <= MOST:
            last += 1
        if last < within.last:
            last = _best_end(lines, sizes, Lines(first, last))
        part = _bare(lines, Lines(first, last))
        if part is not None:
            yield part
        first = last + 1


def _best_end(lines: Sequence[str], sizes: Sizes, full: Lines) -> int:
    """Return the last line of a part whose next line may begin another, at least half full."""
    best, least = full.last, None
    for end in range(full.last, full.first - 1, -1):
        if Lines(full.first, end).size(sizes) < MOST // 2:
            break
        following = lines[end + 1]
        if not following.strip() or _CLOSING.match(following):
            continue
        indent = len(following) - len(following.lstrip())
        if least is None or indent < least:
            best, least = end, indent
    return best


def _bare(lines: Sequence[str], part: Lines) -> Lines | None:
    """Return a part without the blank lines at its ends; ``None`` where it has no others."""
    first, last = part.first, part.last
    while first <= last and not lines[first].strip():
        first += 1
    while last > first and not lines[last].strip():
        last -= 1
    return Lines(first, last) if first <= last else None
