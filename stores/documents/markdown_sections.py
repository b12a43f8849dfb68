"""Where the sections of a Markdown text stand, and the headings above them.

In one pass: LlamaIndex's parser makes an object with a digest of each section, which of a file with
a heading a line takes minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from casewright.stores.documents.line_groups import Lines

#: A heading has at most six of them, as CommonMark has it.
HEADING = re.compile(r"#{1,6}(?=\s)")
FENCE = "```"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the lines below it, to the next one.

    Attributes:
        lines: Where it stands.
        above: The headings above it, without its own.
        heading: Its own; empty for what stands before the first.
    """

    lines: Lines
    above: tuple[str, ...] = ()
    heading: str = ""


def sections(lines: Sequence[str]) -> Iterator[Section]:
    """Yield the sections of a text in their order; those without a word are left out."""
    open_: list[tuple[int, str]] = []
    made, fenced = Section(Lines(0, -1)), False
    for number, line in enumerate([*lines, "# "]):
        begun = HEADING.match(line) if not fenced or number == len(lines) else None
        if line.lstrip().startswith(FENCE):
            fenced = not fenced
        if begun is None:
            continue
        first = made.lines.first
        if any(one.strip() for one in lines[first:number]):
            yield Section(Lines(first, number - 1), made.above, made.heading)
        while open_ and open_[-1][0] >= len(begun[0]):
            open_.pop()
        above = tuple(text for _, text in open_ if text)
        heading = line.lstrip("#").strip().rstrip("#").rstrip()
        made = Section(Lines(number, number), above, heading)
        open_.append((len(begun[0]), heading))
