"""Words of requests and answers, for rules and readers."""

from __future__ import annotations

import re

_LETTERS = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")

#: Words that say nothing about the subject of a text.
_EMPTY = """
a about above after again against all also although always am among an and another any are around
as at away back be became because become been before being below between both but by came can
cannot could did do does doing done down during each either else enough even ever every few first
for from further gave get gets give given goes going got had has have having he her here hers him
his how however i if in into is it its itself just last least less let like likely made make makes
many may me might mine more most much must my myself near need neither never next no nor not
nothing now of off often on once one only or other others our out over own part per perhaps please
put rather really said same say says second see seem several shall she should since so some
something soon still such sure take than that the their them then there these they thing things
third this those though three through thus to together too two under until up upon us use used
using very want was way we well were what when where whether which while who whole whom whose why
will with within without would yet you your yours
"""
STOP_WORDS = frozenset(_EMPTY.split())


def letter_words(text: str) -> list[str]:
    """Return the words of letters, in the text's case, with inner hyphens and apostrophes."""
    return _LETTERS.findall(text)


def content_words(text: str) -> list[str]:
    """Return the lower-case words of four letters or more that are not stop words."""
    words = (word.lower() for word in letter_words(text))
    return [word for word in words if len(word) >= 4 and word not in STOP_WORDS]


def stem(word: str) -> str:
    """Return the first five letters of a word, by which forms of one word are recognised."""
    return word[:5]


def stems(text: str) -> set[str]:
    """Return the stems of a text's content words."""
    return set(map(stem, content_words(text)))
