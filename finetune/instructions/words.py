"""Words and sentences of answers, as constraints count them."""

from __future__ import annotations

import re

_WORD = re.compile(r"\S+")
#: Ends of sentences: a mark, closing quotes or brackets, then space and what may begin one.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Vol|Fig|Inc|Ltd|Co|Corp|U\.S|U\.K"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|\d)\.$"
)
_LETTERS = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")

#: Words that say nothing of what a text is about.
_LISTED = """
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
STOP_WORDS = frozenset(_LISTED.split())


def words(text: str) -> list[str]:
    """Return what stands between spaces."""
    return _WORD.findall(text)


def letter_words(text: str) -> list[str]:
    """Return the words of letters, in the text's own case; hyphens and apostrophes hold inside."""
    return _LETTERS.findall(text)


def content_words(text: str) -> list[str]:
    """Return the lower-case words of four letters or more that say what a text is about."""
    lowered = [word.lower() for word in letter_words(text)]
    return [word for word in lowered if len(word) >= 4 and word not in STOP_WORDS]


def sentences(text: str) -> list[str]:
    """Return the sentences; a line break ends one as a full stop does."""
    found: list[str] = []
    for line in text.split("\n"):
        start = 0
        for end in _SENTENCE_END.finditer(line):
            if not _ABBREVIATION.search(line[: end.start()]):
                found.append(line[start : end.end()].strip())
                start = end.end()
        found.append(line[start:].strip())
    return [one for one in found if one]


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line for line in text.split("\n") if line.strip()]
