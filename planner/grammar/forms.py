"""What may be written in the place of an argument: the static checks, turned round."""

from __future__ import annotations

from collections.abc import Set

from casewright.planner.grammar.terminals import (
    CONTEXT,
    INTEGER,
    LITERAL,
    NUMBER,
    REFERENCE,
    SPAN,
    json_text,
    quoted,
)
from casewright.tools import Parameter, Source

#: Kinds whose argument may be a list.
LIST_KINDS = ("array", "any")


def forms(parameter: Parameter, supplied: Set[str], *, whole: bool) -> tuple[str, ...]:
    """Return what may be written, as alternatives of one terminal; references to steps left out.

    Args:
        parameter: What the argument is for.
        supplied: The terminals that the request has something for.
        whole: Whether this is the whole argument, which must have the parameter's type, or an item
            of a list, which need not.
    """
    sources = parameter.sources
    found: list[str] = []
    if not whole or parameter.kind in ("string", "any"):
        found += [quoted(json_text(choice)) for choice in parameter.choices if _encodable(choice)]
        if Source.LITERAL in sources:
            # A literal may be any text, a span too.
            found.append(LITERAL)
        elif Source.SPAN in sources and SPAN in supplied:
            found.append(SPAN)
        if Source.QUESTION in sources:
            found.append('"question"')
    fields = CONTEXT[parameter.kind if whole else "any"]
    if Source.CONTEXT in sources and fields in supplied:
        found.append(fields)
    if Source.STEP in sources and REFERENCE in supplied:
        found.append(REFERENCE)
    if Source.NUMBER in sources and (not whole or parameter.kind in ("number", "integer", "any")):
        found.append(INTEGER if whole and parameter.kind == "integer" else NUMBER)
    if Source.BOOLEAN in sources and (not whole or parameter.kind in ("boolean", "any")):
        found += ['"true"', '"false"']
    return tuple(found)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
