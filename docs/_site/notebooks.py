"""Takes out of a notebook's page what nbconvert has a browser fetch from other hosts."""

from __future__ import annotations

import re

from mkdocs.structure.pages import Page

# MathJax and Mermaid, with their set-up; no notebook here has formulas or diagrams.
_FETCHED = re.compile(
    r"<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->"
    r"|<script type=\"module\">(?:(?!</script>).)*mermaid.*?</script>",
    flags=re.DOTALL,
)


def on_post_page(output: str, page: Page, config: object) -> str:
    """Leave out the two scripts."""
    return _FETCHED.sub("", output) if page.file.src_uri.endswith(".ipynb") else output
