"""An HTML page as tags and texts, from left to right, in time that grows with its length alone.

Python's own parser begins anew at every ``<`` whose end it does not find.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["text", "start", "end", "raw"]
#: Elements whose content has no tags.
RAW = ("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
#: The rest of a tag: a ``>`` in a quoted value is none.
_REST = re.compile(r"""[^>=]*+(?:=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+)[^>=]*+)*+>""")


def html_tokens(page: str) -> Iterator[tuple[Kind, str, str]]:
    """Yield each text, start, and end of an element, and each raw element as one.

    With each its element's name in small letters, empty for a text, and the text that is said.
    Comments and declarations are left out; what has no end is read to the end of the page.
    """
    at = 0
    while at < len(page):
        tag = _TAG.match(page, at)
        if tag is None and not page.startswith(("<!", "<?"), at):
            # A ``<`` that begins no tag is a text's.
            end = page.find("<", at + 1)
            end = len(page) if end < 0 else end
            yield "text", "", html.unescape(page[at:end])
            at = end
        elif tag is None:
            at = _behind(page, "-->" if page.startswith("<!--", at) else ">", at)
        else:
            end = _tag_end(page, tag.end())
            if end < 0:
                yield "text", "", html.unescape(page[at:])
                return
            name, at = tag[2].lower(), end
            if tag[1]:
                yield "end", name, ""
            elif page.startswith("/>", end - 2):
                yield from (("start", name, ""), ("end", name, ""))
            elif name in RAW:
                closing = re.compile(f"</{name}", re.IGNORECASE).search(page, at)
                end = closing.start() if closing else len(page)
                yield "raw", name, html.unescape(page[at:end])
                at = _behind(page, ">", end)
            else:
                yield "start", name, ""


def _tag_end(page: str, at: int) -> int:
    """Return where a tag ends; below 0 where it does not."""
    if rest := _REST.match(page, at):
        return rest.end()
    # A quotation mark that nothing closes.
    return page.find(">", at) + 1 or -1


def _behind(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)
