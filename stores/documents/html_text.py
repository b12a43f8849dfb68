"""An HTML page as Markdown: headings, paragraphs, lists, tables and code as lines of text.

LlamaIndex's own HTML splitter reads a list of tags and loses what stands in others: code, tables,
plain ``div``s, and bold words, which it moves out of their sentence. So a page is turned into the
Markdown that says the same, and split as Markdown.
"""

from __future__ import annotations

import re
import warnings

#: Never seen by a reader of the page.
UNSEEN = ("script", "style", "template", "noscript", "svg", "head", "title", "iframe")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "dd", "details", "div", "dl", "dt"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre"),
    *("section", "summary", "table", "tbody", "tfoot", "thead", "ul"),
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
#: Stand for a break of paragraphs and of lines, a cell's begin, and a block of code, until the
#: white space of the source is gone. A page's own control characters are taken out first.
PARAGRAPH, LINE, CELL, CODE = "\x01", "\x02", "\x03", "\x04"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def html_text(page: str) -> tuple[str, str]:
    """Return a page's title, empty where it has none, and its text as Markdown."""
    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning

    # Said of a page that is short, or begins as XML; it is read as HTML all the same.
    for said in (MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning):
        warnings.filterwarnings("ignore", category=said)
    soup = BeautifulSoup(CONTROL.sub("", page), "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for tag in soup(UNSEEN):
        tag.decompose()
    codes: list[str] = []
    for tag in soup.find_all(True):
        if tag.name == "pre":
            codes.append(tag.get_text().strip("\n"))
            tag.string = f"{CODE}{len(codes) - 1}{CODE}"
        elif tag.name == "br":
            tag.append(LINE)
        elif tag.name in ("td", "th"):
            tag.insert(0, CELL)
        elif tag.name in ("li", "tr"):
            tag.insert(0, LINE + ("- " if tag.name == "li" else ""))
        elif tag.name in HEADINGS:
            # A heading is one line, whatever is in it.
            for inner in tag("br"):
                inner.append(" ")
            tag.string = f"{HEADINGS[tag.name]} {tag.get_text()}"
        if tag.name in BLOCKS or tag.name in HEADINGS:
            tag.insert(0, PARAGRAPH)
            tag.append(PARAGRAPH)
    return title, _lines(soup.get_text(), codes)


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
