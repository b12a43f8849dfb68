"""Lines of a text put into groups that are no longer than a chunk may be.

A group ends as soon as it is long enough, not when it is as full as can be: a paragraph put in
before it moves few ends, and what was encoded of the rest of the file stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from casewright.stores.documents.text_size import MOST

#: A group of this many tokens ends with its paragraph.
ENOUGH = 96
#: A last group below this goes with the one before it, a first one with a long paragraph.
FEW = 32
#: No part begins with such a line: it closes what is open.
_CLOSING = re.compile(r"\s*(?:[)\]}>]|</|end\b|else\b|elif\b|except\b|finally\b|catch\b)")


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines from ``first`` to ``last``, both included, counted from 0."""

    first: int
    last: int

    def of(self, lines: Sequence[str]) -> str:
        """Return the text of these lines."""
        return "\n".join(lines[self.first : self.last + 1])

    def size(self, sizes: Sequence[int]) -> int:
        """Return how many tokens they have."""
        return sum(sizes[self.first : self.last + 1])


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


def grouped(lines: Sequence[str], sizes: Sequence[int]) -> list[Lines]:
    """Put paragraphs together.

    Only one that is too long by itself is longer than a chunk; the few words before it, which may
    be its heading, are with it.
    """
    groups: list[Lines] = []
    open_ = False
    for paragraph in paragraphs(lines, Lines(0, len(lines) - 1)):
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


def cut(lines: Sequence[str], sizes: Sequence[int], within: Lines) -> Iterator[Lines]:
    """Yield parts no longer than a chunk, each begun at a line that is indented little.

    A line that is too long by itself is a part by itself.
    """
    first = within.first
    while first <= within.last:
        last, size = first, sizes[first]
        while last < within.last and size + sizes[last + 1] <= MOST:
            last += 1
            size += sizes[last]
        if last < within.last:
            last = _best_end(lines, sizes, Lines(first, last))
        part = _bare(lines, Lines(first, last))
        if part is not None:
            yield part
        first = last + 1


def _best_end(lines: Sequence[str], sizes: Sequence[int], full: Lines) -> int:
    """Return the last line of a part whose next line may begin another, at least half full."""
    best, least, size = full.last, None, full.size(sizes)
    for end in range(full.last, full.first - 1, -1):
        if size < MOST // 2:
            break
        size -= sizes[end]
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
