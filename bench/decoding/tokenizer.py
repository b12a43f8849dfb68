"""What the tokenizer of a random model is trained on.

Size and texts are such that prompts and plans are cut into about as many tokens, and leave about as
many choices to a grammar, as with Mistral's own tokenizer. No gold plan is among the texts: whole
calls would become tokens, which no real tokenizer has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from casewright.planner import AnnotatedQuery
from casewright.planner.prompt import render_head
from casewright.tools import Toolbox

#: Tokens, the bytes and the special ones included.
VOCABULARY = 4096
#: How often a prompt's head counts: its words are English and code, which real tokenizers know.
HEAD_WEIGHT = 20


def tokenizer_texts(toolbox: Toolbox, queries: Iterable[AnnotatedQuery]) -> Sequence[str]:
    """Return what a tokenizer is trained on: a prompt's head, and questions."""
    return [*[render_head(toolbox)] * HEAD_WEIGHT, *(query.query for query in queries)]
