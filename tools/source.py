"""Where an argument of a tool may come from (docs: the plan language)."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """One admitted origin of an argument."""

    LITERAL = "literal"
    SPAN = "span"
    QUESTION = "question"
    CONTEXT = "context"
    STEP = "step"
    NUMBER = "number"
    BOOLEAN = "boolean"


#: What identifies a thing can only be looked up, never written.
IDENTIFIER_SOURCES = frozenset({Source.CONTEXT, Source.STEP})
#: What a parameter admits when nothing was declared for it.
UNDECLARED_SOURCES = frozenset(
    {
        Source.SPAN,
        Source.LITERAL,
        Source.NUMBER,
        Source.QUESTION,
        Source.CONTEXT,
        Source.STEP,
    }
)


def default_sources(name: str, kind: str = "any") -> frozenset[Source]:
    """Return what a parameter admits when nothing was declared for it.

    Args:
        name: The parameter's name; one that ends in ``_id`` admits context and steps only.
        kind: Its type; a typed parameter admits only what can fit it.
    """
    if name.endswith("_id"):
        return IDENTIFIER_SOURCES
    if kind in ("number", "integer"):
        return frozenset({Source.NUMBER, Source.CONTEXT, Source.STEP})
    if kind == "boolean":
        return frozenset({Source.BOOLEAN, Source.CONTEXT, Source.STEP})
    if kind == "string":
        return UNDECLARED_SOURCES - {Source.NUMBER}
    return UNDECLARED_SOURCES
