"""The terminals of the grammar: texts, numbers, and the names of what each request supplies.

Names are short, since the time that a grammar takes to compile grows with its text. No class such
as ``\\w`` is used: one such class takes longer to compile than all the rest.
"""

from __future__ import annotations

import json

# Bounds of a plan beyond the plan language's own rules: a model that never ends a text or a list
# would write until its time is up.
#: Characters of a text, literal or span, between its quotes.
TEXT_CHARACTERS = 120
#: Items of a list; a list has at least one.
LIST_ITEMS = 8
#: The highest result of a step that can be referred to, counting from 0.
RESULT_INDEX = 9
#: Characters and words of the question that spans are taken from; time grows with both.
SPAN_CHARACTERS = 2000
SPAN_WORDS = 256
#: Fields of the context that can be referred to, and characters of a field's name.
CONTEXT_FIELDS = 64
CONTEXT_NAME = 64
#: Steps of a plan, whatever the request's budget.
STEPS = 64

LITERAL = "L"
NUMBER = "N"
INTEGER = "I"

# Escapes are those that json.dumps writes, so that a text has one form; a leading blank is useless.
_FIRST = r'([^"\\\x00-\x20]|\\["\\])'
_LATER = r'([^"\\\x00-\x1f]|\\["\\nt])'
#: Defined in every grammar that uses them. Numbers have at most 15 digits, in the form that Python
#: writes: no zero at the end of a fraction, no exponent.
DEFINITIONS = {
    LITERAL: f'{LITERAL}:/"{_FIRST}{_LATER}{{0,{TEXT_CHARACTERS - 1}}}"/',
    NUMBER: (rf"{NUMBER}:/0|-?[1-9][0-9]{{0,14}}|-?(0|[1-9][0-9]{{0,10}})\.(0|[0-9]{{0,3}}[1-9])/"),
    INTEGER: f"{INTEGER}:/0|-?[1-9][0-9]{{0,14}}/",
}

# What a request supplies.
SPAN = "S"
REFERENCE = "R"
#: Fields of the context by the kind of their value.
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
