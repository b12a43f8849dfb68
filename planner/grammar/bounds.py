"""How much a written plan may hold beyond the plan language's own rules.

A model that never ends a text or a list would write until its time is up: what it may write is
bounded, and more than a plan ever needs.
"""

from __future__ import annotations

#: Characters of a text, literal or span, as they stand between its quotes.
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
