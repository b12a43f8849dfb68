"""What the offline judge reads of a text: its words, the names in it, its title."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from casewright.stores.feedback.candidate import Candidate

#: What a title may be called, the most telling first: of a chunk of code, its symbol.
TITLES = ("symbol", "title", "name", "heading", "subject")
#: Names and titles of fewer characters stand in any text by chance.
SHORTEST = 4

_WORD = re.compile(r"\w+")
#: A run of capitalised words or figures; small links between them ("Bank of England") belong to it.
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:(?:of|the|de|du|von|van|and)\s+)?[A-Z0-9][\w'-]*)*")
_BRACKETS = re.compile(r"\([^()]*\)")
#: Closed word classes: they carry no evidence of relevance.
_CLOSED = (
    "a about after all also an and any are as at be because been before being between both but by "
    "can could did do does doing during each few for from further had has have having he her hers "
    "him his how i if in into is it its just me more most my no nor not of on once one only or "
    "other our out over own same she should so some such than that the their them then there "
    "these they this those through to too under until up very was we were what when where which "
    "while who whom whose why will with would you your s t many much"
)
STOPWORDS = frozenset(_CLOSED.split())


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, read.

    Attributes:
        title: The title's words, lower case, joined by blanks; what is in brackets is left out.
        body: The text's words likewise, with a blank on either side.
        words: Content words of title and text.
        title_words: Content words of the title.
        names: Capitalised names in the text, as ``title`` is written.
    """

    title: str
    body: str
    words: frozenset[str]
    title_words: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=512)
def read(title: str, text: str) -> Reading:
    """Read a text, or a question with an empty title."""
    bare = _BRACKETS.sub("", title)
    names = frozenset(
        phrase(match.group())
        for match in _NAME.finditer(text)
        if len(match.group()) >= SHORTEST and match.group().lower() not in STOPWORDS
    )
    return Reading(
        title=phrase(bare),
        body=f" {phrase(text)} ",
        words=_content(f"{title} {text}"),
        title_words=_content(bare),
        names=names,
    )


def read_candidate(candidate: Candidate) -> Reading:
    """Read a candidate's text without the lines that only repeat its title."""
    title = title_of(candidate)
    problem = candidate.hit.case.problem
    titles = {title, *(problem.get(name) for name in TITLES if isinstance(problem.get(name), str))}
    lines = candidate.text.split("\n")
    return read(title, "\n".join(line for line in lines if line.strip() not in titles))


def title_of(candidate: Candidate) -> str:
    """Return what the case is called; empty where nothing of it goes by such a name."""
    case = candidate.hit.case
    for name in TITLES:
        for told in (case.problem.get(name), case.metadata.get(name)):
            if isinstance(told, str) and told.strip():
                return told.strip()
    return ""


def phrase(text: str) -> str:
    """Return a text's words, lower case, joined by blanks."""
    return " ".join(_words(text))


def stands(words: str, body: str) -> bool:
    """Say whether a phrase stands in a body as whole words; a very short one never does."""
    return len(words) >= SHORTEST and f" {words} " in body


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of ``whole`` that is in ``part``; 0 of nothing."""
    return len(part & whole) / len(whole) if whole else 0.0


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(text) if word not in STOPWORDS)
