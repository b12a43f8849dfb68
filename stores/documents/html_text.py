"""An HTML page as Markdown: headings, paragraphs, lists, tables and code as lines of text.

LlamaIndex's own HTML splitter reads a list of tags and loses what stands in others: code, tables,
plain ``div``s, and bold words, which it moves out of their sentence. So a page is turned into the
Markdown that says the same, and split as Markdown. No tree is made: a page may nest without end.
"""

from __future__ import annotations

import re

from casewright.stores.documents.html_tokens import html_tokens

#: Never seen by a reader of the page, and of those the raw ones.
UNSEEN = ("template", "noscript", "svg", "head")
UNSEEN_RAW = ("script", "style", "iframe", "noembed", "noframes")
#: What may stand in a page's head; anything else ends it.
IN_HEAD = ("base", "link", "meta", "noscript", "template")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "dd", "details", "div", "dl", "dt"),
    *("figcaption", "figure", "footer", "form", "header", "main", "nav", "ol", "p", "section"),
    *("summary", "table", "tbody", "tfoot", "thead", "ul", "body"),
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
#: Stand for a break of paragraphs and of lines, a cell's begin, and a block of code, until the
#: white space of the source is gone. A page's own control characters are taken out first.
PARAGRAPH, LINE, CELL, CODE = "\x01", "\x02", "\x03", "\x04"
BEFORE = {"br": LINE, "td": CELL, "th": CELL, "li": f"{LINE}- ", "tr": LINE, "hr": PARAGRAPH}
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def html_text(page: str) -> tuple[str, str]:
    """Return a page's title, empty where it has none, and its text as Markdown."""
    read = _Page()
    for kind, name, text in html_tokens(CONTROL.sub("", page)):
        if kind == "text":
            read.text(CONTROL.sub("", text))
        elif kind == "raw":
            read.raw(name, CONTROL.sub("", text))
        elif kind == "start":
            read.start(name)
        else:
            read.end(name)
    read.close()
    return " ".join(read.title.split()), _lines("".join(read.said), read.codes)


class _Page:
    """What a page says so far.

    Attributes:
        title: The page's.
        said: Its text, in pieces.
        codes: Its blocks of code.
    """

    def __init__(self) -> None:
        self.title = ""
        self.said: list[str] = []
        self.codes: list[str] = []
        # The element whose content is read apart: code, a heading, what is unseen; empty for none.
        self._apart = ""
        # How many blocks are open in it, and how many elements of its own kind.
        self._blocks = self._same = 0
        self._held: list[str] = []

    def text(self, text: str) -> None:
        """Read a text."""
        if self._apart == "head" and text.strip():
            self.close()
        (self._held if self._apart else self.said).append(text)

    def raw(self, name: str, text: str) -> None:
        """Read an element that has no others in it."""
        if name == "title":
            self.title = self.title or text
        elif name not in UNSEEN_RAW:
            self.text(text)

    def start(self, name: str) -> None:
        """Read the begin of an element."""
        ends = name in HEADINGS and self._apart in HEADINGS
        if ends or (self._apart == "head" and name not in IN_HEAD):
            self.close()
        if self._apart:
            self._blocks += name in BLOCKS
            self._same += name == self._apart
            if name == "br":
                self._held.append("\n")
        elif name == "pre" or name in HEADINGS or name in UNSEEN:
            self._apart = name
        else:
            self.said.append(BEFORE.get(name, PARAGRAPH if name in BLOCKS else ""))

    def end(self, name: str) -> None:
        """Read the end of an element; one that was not closed ends with what it is in."""
        own = name == self._apart or (name in HEADINGS and self._apart in HEADINGS)
        if not self._apart:
            self.said.append(PARAGRAPH if name in BLOCKS else "")
        elif own and self._same:
            self._same -= 1
        elif name in BLOCKS and self._blocks:
            self._blocks -= 1
        elif own or name in BLOCKS:
            self.close()
            self.said.append(PARAGRAPH if name in BLOCKS else "")

    def close(self) -> None:
        """End what is read apart."""
        text = "".join(self._held)
        if self._apart == "pre":
            self.codes.append(text.strip("\n"))
            self.said.append(f"{PARAGRAPH}{CODE}{len(self.codes) - 1}{CODE}{PARAGRAPH}")
        elif self._apart in HEADINGS:
            self.said.append(f"{PARAGRAPH}{HEADINGS[self._apart]} {text}{PARAGRAPH}")
        self._apart, self._blocks, self._same, self._held = "", 0, 0, []


def _lines(text: str, codes: list[str]) -> str:
    text = re.sub(r"\s+", " ", text)
    text = re.sub(f"([{LINE}{PARAGRAPH}] ?){CELL}", r"\1", text)
    text = re.sub(f" ?{CELL} ?", " | ", text)
    # A paragraph inside of a list's item begins on the item's line.
    text = re.sub(f"{LINE}- [{PARAGRAPH}{LINE} ]*", f"{LINE}- ", text)
    text = re.sub(f" ?{LINE} ?", "\n", text)
    text = re.sub(f" ?{PARAGRAPH} ?", "\n\n", text)
    text = re.sub(r" *\n *", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return re.sub(f"{CODE}([0-9]+){CODE}", lambda at: f"```\n{codes[int(at[1])]}\n```", text)
