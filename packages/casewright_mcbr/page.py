"""HTML pages for answers; a page needs no other files."""

from __future__ import annotations

import base64
from html import escape

_STYLE = (
    "body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}}img{{width:{image};border:1px solid #8888;border-radius:.5rem}}"
    "figure{{display:inline-block;margin:0 1rem 1rem 0;max-width:{figure};vertical-align:top}}"
    "figcaption{{font-size:.85rem}}.right{{color:#197b30}}.wrong{{color:#c0392b}}"
    "code{{font-size:1.1em}}li,p{{white-space:pre-line}}"
)


def figure(image: bytes, caption: str) -> str:
    """Return an image with its caption as HTML."""
    # The image need not be a PNG: browsers recognise an image's type by its first bytes.
    data = base64.b64encode(image).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def item(text: str, *, is_right: bool) -> str:
    """Return a list item for an attempt, coloured by the verdict ``is_right``; ``text`` is HTML."""
    return f'<li class="{"right" if is_right else "wrong"}">{text}</li>'


def page(title: str, body: str, *, image_width: str, figure_width: str) -> str:
    """Return an HTML document; ``title`` is plain text, ``body`` is HTML.

    ``image_width`` and ``figure_width`` are CSS lengths: the width of an image, and the maximum
    width of an image with its caption.
    """
    style = _STYLE.format(image=image_width, figure=figure_width)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{style}</style>{body}</html>\n"
    )
