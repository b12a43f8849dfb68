"""A picture with its caption, for pages that need no other file."""

from __future__ import annotations

import base64
from html import escape


def figure(image: bytes, caption: str) -> str:
    """Return a picture with its caption as HTML."""
    # Browsers tell an image's type by its first bytes.
    data = base64.b64encode(image).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
