"""Defines the grammar's terminals for texts and numbers, and names those that a request defines.

Names are short, since the time to compile a grammar grows with its text. Character classes such as
``\\w`` are avoided: a single one takes longer to compile than all other terminals together.
"""

from __future__ import annotations

import json

# Limits that the plan language does not have. They stop models that never end a text or a list.
#: Maximum number of characters of a literal or a span, between its quotes.
MAX_TEXT_CHARACTERS = 120
#: Maximum number of items of a list; a list has at least one item.
MAX_LIST_ITEMS = 8
#: Maximum index of a result in a reference; the first result has index 0.
MAX_RESULT_INDEX = 9
#: Spans are taken only from this many characters and words at the beginning of the question. The
#: time to compile a grammar grows with both.
MAX_QUESTION_CHARACTERS = 2000
MAX_QUESTION_WORDS = 256
#: Maximum number of context fields that a plan can refer to.
MAX_CONTEXT_FIELDS = 64
#: Maximum number of characters of the name of such a field.
MAX_NAME_CHARACTERS = 64
#: Maximum number of steps of a plan, even if a request admits more.
MAX_GRAMMAR_STEPS = 64

# Names of the terminals that are the same for all requests.
LITERAL = "L"
NUMBER = "N"
INTEGER = "I"

# Escapes are those of json.dumps, so that a text has a single form. No literal starts with a space.
_FIRST_CHARACTER = r'([^"\\\x00-\x20]|\\["\\])'
_LATER_CHARACTER = r'([^"\\\x00-\x1f]|\\["\\nt])'
#: Definitions of these three terminals. A number has at most 15 digits and no exponent. As in
#: Python, a fraction has no trailing zero, except in ``.0``.
DEFINITIONS = {
    LITERAL: f'{LITERAL}:/"{_FIRST_CHARACTER}{_LATER_CHARACTER}{{0,{MAX_TEXT_CHARACTERS - 1}}}"/',
    NUMBER: rf"{NUMBER}:/0|-?[1-9][0-9]{{0,14}}|-?(0|[1-9][0-9]{{0,10}})\.(0|[0-9]{{0,3}}[1-9])/",
    INTEGER: f"{INTEGER}:/0|-?[1-9][0-9]{{0,14}}/",
}

# Names of the terminals that a request supplies.
SPAN = "S"
REFERENCE = "R"
#: Names of the terminals for context fields, by the kind of the parameter that takes the field.
CONTEXT_TERMINALS = {
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


def result_field_regex(fields: tuple[str, ...]) -> str:
    """Return a regex for the part of a reference after the step: index, dot and field.

    Index 0 is not written, as in the text form of a plan.
    """
    return rf"/(\[[1-{MAX_RESULT_INDEX}]\])?\.({'|'.join(fields)})/"
