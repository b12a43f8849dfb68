"""MkDocs hook: removes scripts of other hosts, which nbconvert adds to a notebook's page."""

from __future__ import annotations

import re

from mkdocs.structure.pages import Page

# MathJax and Mermaid with their configuration; no notebook here has formulas or diagrams.
_FETCHED = re.compile(
    r"<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->"
    r"|<script type=\"module\">(?:(?!</script>).)*mermaid.*?</script>",
    flags=re.DOTALL,
)


def on_post_page(output: str, page: Page, config: object) -> str:
    """Remove the two scripts from a notebook's page."""
    return _FETCHED.sub("", output) if page.file.src_uri.endswith(".ipynb") else output
