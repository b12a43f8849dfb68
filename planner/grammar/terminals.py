"""The terminals of the grammar: texts, numbers, and the names of what each request supplies.

Names are short, since the time that a grammar takes to compile grows with its text. No class such
as ``\\w`` is used: one of them takes longer to compile than all the rest.
"""

from __future__ import annotations

import json

from casewright.planner.grammar.bounds import RESULT_INDEX, TEXT_CHARACTERS

LITERAL = "L"
NUMBER = "N"
INTEGER = "I"

# Escapes are those that json.dumps writes, so that a text has one form; a first blank has no use.
_FIRST = r'([^"\\\x00-\x20]|\\["\\])'
_LATER = r'([^"\\\x00-\x1f]|\\["\\nt])'
#: Defined in every grammar that uses them. Numbers have at most 15 digits, and no form but the one
#: that Python writes: no zero at the end of a fraction, no exponent.
DEFINITIONS = {
    LITERAL: f'{LITERAL}:/"{_FIRST}{_LATER}{{0,{TEXT_CHARACTERS - 1}}}"/',
    NUMBER: (rf"{NUMBER}:/0|-?[1-9][0-9]{{0,14}}|-?(0|[1-9][0-9]{{0,10}})\.(0|[0-9]{{0,3}}[1-9])/"),
    INTEGER: f"{INTEGER}:/0|-?[1-9][0-9]{{0,14}}/",
}

# What a request supplies.
SPAN = "S"
REFERENCE = "R"
#: Fields of the context whose value has a kind.
CONTEXT = {
    "string": "CS",
    "number": "CN",
    "integer": "CI",
    "boolean": "CB",
    "array": "CA",
    "any": "CX",
}


def quoted(text: str) -> str:
    """Return a Lark string that matches this text and no other."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def json_text(text: str) -> str:
    """Return the text as a plan writes it."""
    return json.dumps(text, ensure_ascii=False)


def fields_after_step(fields: tuple[str, ...]) -> str:
    """Return a regex for what follows ``sK`` in a reference: index, dot and field.

    Index 0 is left out, as in the text form of a plan.
    """
    return rf"/(\[[1-{RESULT_INDEX}]\])?\.({'|'.join(fields)})/"
