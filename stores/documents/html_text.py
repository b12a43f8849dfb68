"""Converts an HTML page to Markdown, which is then split as Markdown.

LlamaIndex's HTML splitter reads only a list of tags: it loses code, tables and plain ``div``s, and
moves bold words out of their sentence. This module keeps the content. It builds no tree, since a
page may nest tags without a limit. Unlike Python's parser, it takes linear time also for a page
with many unfinished tags.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

#: Elements whose content is read as text, even if it looks like tags.
RAW_ELEMENTS = ("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp")
#: Elements that a browser does not show: elements with tags inside, and some ``RAW_ELEMENTS``.
HIDDEN_ELEMENTS = ("template", "noscript", "svg", "head")
HIDDEN_RAW_ELEMENTS = ("script", "style", "iframe", "noembed", "noframes")
#: Elements, beside ``RAW_ELEMENTS``, of a page's head; any other element ends the head.
HEAD_ELEMENTS = ("base", "link", "meta", "noscript", "template")
#: Elements before and after which a paragraph ends.
BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "dd", "details", "div", "dl", "dt"),
    *("figcaption", "figure", "footer", "form", "header", "main", "nav", "ol", "p", "section"),
    *("summary", "table", "tbody", "tfoot", "thead", "ul", "body"),
)
#: Blocks that, in a table cell, do not end the line of the row.
CELL_BLOCKS = ("p", "div")
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
#: Marks of a paragraph break, a line break, the start of a cell, and a code block. They stand for
#: the tags until the white space is normalised. A page's own control characters are removed first.
PARAGRAPH, LINE, CELL, CODE = "\x01", "\x02", "\x03", "\x04"
START_MARKS = {"br": LINE, "td": CELL, "th": CELL, "li": f"{LINE}- ", "tr": LINE, "hr": PARAGRAPH}
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
#: The rest of a tag after its name; a quoted value in it may contain ``>``.
_TAG_REST = re.compile(r"""[^>=]*+(?:=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+)[^>=]*+)*+>""")


def html_text(page: str) -> tuple[str, str]:
    """Return a page's title, which may be empty, and its text as Markdown."""
    reader = _PageReader()
    for kind, name, token in _tokens(CONTROL_CHARACTERS.sub("", page)):
        # A character reference, such as ``&#1;``, may stand for a control character.
        text = CONTROL_CHARACTERS.sub("", token)
        if kind == "text":
            reader.text(text)
        elif kind == "raw":
            reader.raw(name, text)
        elif kind == "start":
            reader.start(name)
        else:
            reader.end(name)
    reader.close()
    return " ".join(reader.title.split()), _markdown("".join(reader.pieces), reader.code_blocks)


def _tokens(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind (text, start, end or raw), lower-case element name and text of each token.

    Comments and declarations are left out; an unfinished comment reaches to the end of the page.
    """
    position = 0
    while position < len(page):
        tag = _TAG.match(page, position)
        if tag is None and not page.startswith(("<!", "<?"), position):
            # A ``<`` that does not begin a tag is text.
            end = _mark_index(page, "<", position + 1)
            yield "text", "", html.unescape(page[position:end])
            position = end
        elif tag is None:
            mark = "-->" if page.startswith("<!--", position) else ">"
            position = _mark_index(page, mark, position) + len(mark)
        else:
            tag_rest = _TAG_REST.match(page, tag.end())
            # A tag whose quotation mark is never closed ends with the next ``>``.
            end = tag_rest.end() if tag_rest else page.find(">", tag.end()) + 1
            # ``find`` returns -1 if it finds no end.
            if end == 0:
                yield "text", "", html.unescape(page[position:])
                return
            name, position = tag[2].lower(), end
            if tag[1]:
                yield "end", name, ""
            elif page.startswith("/>", end - 2):
                yield from (("start", name, ""), ("end", name, ""))
            elif name in RAW_ELEMENTS:
                closing = re.compile(f"</{name}", re.IGNORECASE).search(page, position)
                end = closing.start() if closing else len(page)
                yield "raw", name, html.unescape(page[position:end])
                position = _mark_index(page, ">", end) + 1
            else:
                yield "start", name, ""


def _mark_index(page: str, mark: str, position: int) -> int:
    """Return the index of the next mark, else the page's length."""
    index = page.find(mark, position)
    return len(page) if index < 0 else index


class _PageReader:
    """Reads tokens, and collects the page's title, its text in pieces, and its code blocks."""

    def __init__(self) -> None:
        self.title = ""
        self.pieces: list[str] = []
        self.code_blocks: list[str] = []
        # The open element whose content is collected separately: code, a heading or hidden content.
        self._element = ""
        self._content: list[str] = []
        # Numbers of open elements inside ``_element``: blocks, and elements of the same name.
        self._open_block_count = self._open_same_count = 0
        # True in an open table cell, where a paragraph does not begin a new line.
        self._in_cell = False

    def text(self, text: str) -> None:
        if self._element == "head" and text.strip():
            self.close()
        (self._content if self._element else self.pieces).append(text)

    def raw(self, name: str, text: str) -> None:
        if name == "title":
            self.title = self.title or text
        elif name not in HIDDEN_RAW_ELEMENTS:
            self.text(text)

    def start(self, name: str) -> None:
        ends_element = name in HEADINGS and self._element in HEADINGS
        if ends_element or (self._element == "head" and name not in HEAD_ELEMENTS):
            self.close()
        if self._element:
            self._open_block_count += name in BLOCKS
            self._open_same_count += name == self._element
            if name == "br":
                self._content.append("\n")
        elif name == "pre" or name in HEADINGS or name in HIDDEN_ELEMENTS:
            self._element = name
        elif self._in_cell and name in CELL_BLOCKS:
            self.pieces.append(" ")
        else:
            self._in_cell = name in ("td", "th") or (self._in_cell and name not in BLOCKS)
            self.pieces.append(START_MARKS.get(name, PARAGRAPH if name in BLOCKS else ""))

    def end(self, name: str) -> None:
        """Read an end tag; an element without an end tag ends with the element around it."""
        ends_element = name == self._element or (name in HEADINGS and self._element in HEADINGS)
        if not self._element:
            is_inline = self._in_cell and name in CELL_BLOCKS
            self._in_cell = self._in_cell and name not in ("td", "th", "tr", "table")
            self.pieces.append(" " if is_inline else PARAGRAPH if name in BLOCKS else "")
        elif ends_element and self._open_same_count:
            self._open_same_count -= 1
        elif name in BLOCKS and self._open_block_count:
            self._open_block_count -= 1
        elif ends_element or name in BLOCKS:
            self.close()
            self.pieces.append(PARAGRAPH if name in BLOCKS else "")

    def close(self) -> None:
        """End the element whose content is collected separately."""
        text = "".join(self._content)
        if self._element == "pre":
            self.code_blocks.append(text.strip("\n"))
            self.pieces.append(f"{PARAGRAPH}{CODE}{len(self.code_blocks) - 1}{CODE}{PARAGRAPH}")
        elif self._element in HEADINGS:
            self.pieces.append(f"{PARAGRAPH}{HEADINGS[self._element]} {text}{PARAGRAPH}")
        self._element, self._open_block_count, self._open_same_count, self._content = "", 0, 0, []


def _markdown(text: str, code_blocks: list[str]) -> str:
    text = re.sub(r"\s+", " ", text)
    text = re.sub(f"([{LINE}{PARAGRAPH}] ?){CELL}", r"\1", text)
    text = re.sub(f" ?{CELL} ?", " | ", text)
    # A paragraph in a list item begins on the item's line.
    text = re.sub(f"{LINE}- [{PARAGRAPH}{LINE} ]*", f"{LINE}- ", text)
    text = re.sub(f" ?{LINE} ?", "\n", text)
    text = re.sub(f" ?{PARAGRAPH} ?", "\n\n", text)
    text = re.sub(r" *\n *", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    code_mark = f"{CODE}([0-9]+){CODE}"
    return re.sub(code_mark, lambda match: f"```\n{code_blocks[int(match[1])]}\n```", text)
