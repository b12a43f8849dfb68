"""Splits texts into parts that can be quoted: sentences, lists, table rows, code.

If a list is split into items, each item begins with the line that introduces the list. In a row of
a table, each cell begins with the column's name. Code is never split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

#: A list of at most this many characters is one part; a longer list is split into its items.
MAX_LIST_CHARACTERS = 500
#: The start of the lines around code.
FENCE = "```"

_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_CELL_END = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")
_SENTENCE_GAP = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)\s+(?=[^\s\da-z])"
)
#: A link in Markdown; only its text is quoted.
_LINK = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\s]*(?:\s\"[^\"\n]*\")?\)|\[[^\[\]\n]*\])")
#: Comments of HTML, and attributes of Markdown elements: ``{#id}``.
_INVISIBLE = re.compile(r"<!--.*?-->|\{[:#][^{}\n]*\}", re.DOTALL)
#: Left out of prose: lines that begin admonitions, underlines of titles, marks of block quotes.
_PROSE_MARKS = re.compile(r"^(?:\s*(?:!!!|\?\?\?\+?)\s.*|[=~]{4,}\s*$|>\s)")
#: A line of at least this many characters continues on the next line.
MIN_WRAPPED_CHARACTERS = 50
#: A line that continues the line before. It begins with ``(``, code or lower case, not ``word:``.
_CONTINUED_LINE = re.compile(r"[a-z(`][^:]*(?::\S|$|\s)")


@dataclass(frozen=True, slots=True)
class Quotable:
    """Part of a text: its lines, and the heading above it."""

    text: str
    heading: str = ""

    @property
    def multiline(self) -> bool:
        """True if the lines must not be joined."""
        return "\n" in self.text


def quotables(text: str) -> list[Quotable]:
    """Return the parts of a text, in order, without its headings."""
    parts: list[Quotable] = []
    # ``intro`` is a sentence that ends with a colon; it introduces the next block.
    heading = intro = ""
    for kind, lines in _blocks(_INVISIBLE.sub("", text).split("\n")):
        if kind == "heading":
            match = _HEADING.fullmatch(lines[0])
            heading = match[1].replace("`", "") if match else ""
            intro = ""
            continue
        if kind == "prose":
            unmarked_lines = [_PROSE_MARKS.sub("", line, count=1) for line in lines]
            if not (prose := [line for line in unmarked_lines if line.strip()]):
                continue
            *sentences, last = _sentences(prose)
            intro = last if last.endswith(":") else ""
            texts = sentences if intro else [*sentences, last]
        else:
            texts = _structured_parts(intro, kind, lines)
            intro = ""
        parts += [Quotable(part_text, heading) for part_text in texts]
    if intro:
        parts.append(Quotable(intro, heading))
    return parts


def cross_encoder_input(parts: Sequence[Quotable]) -> list[str]:
    """Return a passage as ``CrossEncoder`` reads it: the first part's heading, then all parts."""
    return [parts[0].heading if parts else "", *(part.text for part in parts)]


def _structured_parts(intro: str, kind: str, lines: list[str]) -> list[str]:
    """Return the parts of a list, a table or code; ``intro`` is put before list items and code."""
    prefix = f"{intro}\n" if intro else ""
    if kind == "table":
        return _table_rows(lines)
    lines = _dedented(lines) if kind == "code" else [_LINK.sub(r"\1", line) for line in lines]
    text = prefix + "\n".join(lines)
    if kind == "code" or len(text) <= MAX_LIST_CHARACTERS:
        return [text]
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line) or not items:
            items.append(_ITEM.sub("", line, count=1))
        else:
            items[-1] += f" {line.strip()}"
    return [f"{prefix.strip()} {item}".strip() for item in items]


def _table_rows(lines: list[str]) -> list[str]:
    """Return the rows of a table; if the table has a header, each cell has its column's name.

    Without a rule below the first line, the table has no header, and the first line is a row.
    """
    has_header = len(lines) > 1 and _TABLE_RULE.fullmatch(lines[1]) is not None
    bare_lines = (line.strip().strip("|") for line in lines if not _TABLE_RULE.fullmatch(line))
    table = [
        [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line)] for line in bare_lines
    ]
    if not table:
        return []
    header, *rows = table if has_header else [[""] * max(map(len, table)), *table]
    named_rows = (zip(header, row, strict=False) for row in rows if any(row))
    texts = [
        "; ".join(f"{name}: {cell}" if name else cell for name, cell in row) for row in named_rows
    ]
    return texts or ["; ".join(header)]


def _blocks(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return the blocks of a text: the kind (heading, code, table, list, prose), and the lines."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    previous_kind, in_fence = "", False
    for line in lines:
        if in_fence:
            blocks[-1][1].append(line)
            in_fence = not line.lstrip().startswith(FENCE)
            continue
        in_fence = line.lstrip().startswith(FENCE)
        kind = "code" if in_fence else _kind(line, blocks[-1][0])
        can_continue = kind == blocks[-1][0] and kind not in ("heading", "code")
        # A list may have blank lines between its items.
        if can_continue and (previous_kind or kind == "list"):
            blocks[-1][1].append(line)
        elif kind:
            blocks.append((kind, [line]))
        previous_kind = kind
    return blocks[1:]


def _kind(line: str, last_block_kind: str) -> str:
    if not line.strip():
        return ""
    if _HEADING.fullmatch(line):
        return "heading"
    if line.lstrip().startswith("|"):
        return "table"
    if _ITEM.match(line) or (last_block_kind == "list" and line[:1].isspace()):
        return "list"
    return "prose"


def _dedented(lines: list[str]) -> list[str]:
    indent = len(lines[0]) - len(lines[0].lstrip())
    return [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines]


def _sentences(lines: list[str]) -> list[str]:
    text = lines[0]
    for previous_line, line in pairwise(lines):
        continues = len(previous_line) >= MIN_WRAPPED_CHARACTERS or _CONTINUED_LINE.match(line)
        text += (" " if continues and previous_line[-1:] not in ".!?:" else "\n") + line
    text = _LINK.sub(r"\1", text)
    return [
        " ".join(sentence.split())
        for line in text.split("\n")
        for sentence in _SENTENCE_GAP.split(line)
        if sentence.strip()
    ] or [""]
