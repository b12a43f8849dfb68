"""The terminals of the grammar: texts, numbers, and the names of each request's terminals.

Names are short, since the time to compile a grammar grows with its text. Classes such as ``\\w``
are avoided: one of them takes longer to compile than all the rest.
"""

from __future__ import annotations

import json

# Bounds that the plan language lacks, for models that would never end a text or a list:
#: Maximal characters of a text, literal or span, between its quotes.
TEXT_CHARACTERS = 120
#: Maximal number of items of a list; a list has at least one.
LIST_ITEMS = 8
#: Maximal index, from 0, of a result in a reference.
RESULT_INDEX = 9
#: Maximal characters and words of the question for spans; compile time grows with both.
SPAN_CHARACTERS = 2000
SPAN_WORDS = 256
#: Maximal number of context fields for references, and of characters of a field's name.
CONTEXT_FIELDS = 64
CONTEXT_NAME = 64
#: Maximal number of steps of a plan, for any budget.
STEPS = 64

LITERAL = "L"
NUMBER = "N"
INTEGER = "I"

# Only the escapes of json.dumps, so that a text has one form; a leading space is useless.
_FIRST = r'([^"\\\x00-\x20]|\\["\\])'
_LATER = r'([^"\\\x00-\x1f]|\\["\\nt])'
#: Terminals for all requests. Numbers have at most 15 digits in Python's form: no trailing zero in
#: a fraction, no exponent.
DEFINITIONS = {
    LITERAL: f'{LITERAL}:/"{_FIRST}{_LATER}{{0,{TEXT_CHARACTERS - 1}}}"/',
    NUMBER: (rf"{NUMBER}:/0|-?[1-9][0-9]{{0,14}}|-?(0|[1-9][0-9]{{0,10}})\.(0|[0-9]{{0,3}}[1-9])/"),
    INTEGER: f"{INTEGER}:/0|-?[1-9][0-9]{{0,14}}/",
}

# Terminals that a request supplies.
SPAN = "S"
REFERENCE = "R"
#: Terminals of context fields by the type of the value.
CONTEXT = {
    "string": "CS",
    "number": "CN",
    "integer": "CI",
    "boolean": "CB",
    "array": "CA",
    "any": "CX",
}


def quoted(text: str) -> str:
    """Return a Lark string that matches exactly this text."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def fields_after_step(fields: tuple[str, ...]) -> str:
    """Return a regex for what follows ``sK`` in a reference: index, dot and field.

    Index 0 is left out, as in the text form of a plan.
    """
    return rf"/(\[[1-{RESULT_INDEX}]\])?\.({'|'.join(fields)})/"
