"""Words and sentences of answers, as constraints count them."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\S+")
#: Ends of sentences: a mark, closing quotes or brackets, then space and what may begin one.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Vol|Fig|Inc|Ltd|Co|Corp|U\.S|U\.K"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|\d)\.$"
)
_LETTERS = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")

#: Words that say nothing of what a text is about.
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


def stem(word: str) -> str:
    """Return how a word begins: words that begin alike are forms of one word."""
    return word[:5]


def stems(text: str) -> set[str]:
    """Return the beginnings of a text's content words."""
    return set(map(stem, content_words(text)))


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


#: Code, calls, markup, formulas, addresses: text whose letters and marks mean something.
_MARKED = re.compile(r"[{}\\<>`|=_#@~^]|https?:|www\.|\t|\[\[|\*\*|\w\(['\"]|\w\(\)")
#: Requests about the form of a text, which a further demand on its form could contradict.
_ABOUT_FORM = re.compile(
    r"(?i)\b(?:capitali[sz]|upper.?case|lower.?case|punctuat|spell|grammar|proofread|typo|format"
    r"|json|html|xml|latex|markdown|code|program|function|script|regex|regular expression|sql"
    r"|quer(?:y|ies) for|python|javascript|bash|shell|command|comma|quot|bullet|table|rewrite"
    r"|rephrase|paraphrase|edit|correct the|convert|translat|anagram|letters?|acronym|rhym|replace"
    r"|placeholder|fill in|conversation|dialog)"
)
#: Requests that say how the answer is to be written.
_BOUND = re.compile(
    r"(?i)\b(?:only|exactly|one word|single word|at most|at least|no more than|no longer than"
    r"|less than|fewer than|up to [0-9]+|[0-9]+ (?:words|sentences|characters|lines)"
    r"|in (?:one|two|three|a) (?:word|sentence|line|paragraph)s?"
    r"|start(?:s|ing)? with|begin(?:s|ning)? with|end(?:s|ing)? with|titled?|bullet|json"
    r"|list of|following format|in the form)\b"
)
#: How an answer begins that speaks to the person.
_CHAT = re.compile(r"(?i)(?:sure|of course|certainly|absolutely|great|i'?m|i can|i do|i will)\b")
#: Requests for texts of a form of their own.
_CREATIVE = re.compile(
    r"(?i)\b(?:poem|haiku|sonnet|song|lyrics|rap|story|essay|email|e-mail|letter|dialogue|speech"
    r"|script|tweet|blog|post|review|slogan|tagline|caption|joke|recipe|resume|cover letter"
    r"|announcement|advertis\w*|paragraph|continue|complet\w*|summar\w*|headline|title)\b"
)
_ITEM = re.compile(r"^\s*(?:[-+*•–]|\(?[0-9]{1,2}[.):]|\(?[a-hA-H][.)]|Step [0-9]+:)\s+\S")
_MARKER = re.compile(r"^\s*(?:[-+*•–]|\(?[0-9]{1,2}[.):]|\(?[a-hA-H][.)]|Step [0-9]+:)\s+")
#: Requests that are remembered: every rule asks the same of one.
_REMEMBERED = 64
_END = re.compile(r"[.!?]+(?=[\"'”’)\]]*(?:\s|$))")


def is_prose(answer: str) -> bool:
    """Say whether the answer is plain language."""
    letters = sum(char.isalpha() or char.isspace() for char in answer)
    return not _MARKED.search(answer) and letters >= 0.75 * len(answer)


@lru_cache(maxsize=_REMEMBERED)
def about_form(question: str) -> bool:
    """Say whether the request is about the form of a text."""
    return _ABOUT_FORM.search(question) is not None


@lru_cache(maxsize=_REMEMBERED)
def is_bound(question: str) -> bool:
    """Say whether the request prescribes the answer's form already."""
    return _BOUND.search(question) is not None


@lru_cache(maxsize=_REMEMBERED)
def is_creative(question: str) -> bool:
    """Say whether a text of a form of its own is asked for."""
    return _CREATIVE.search(question) is not None


def is_chat(answer: str) -> bool:
    """Say whether the answer speaks to the person: it asks back, agrees or refuses."""
    return "?" in answer or _CHAT.match(answer) is not None


def list_items(answer: str) -> list[str]:
    """Return the items of an answer that is a list and nothing else, else nothing."""
    found = lines(answer)
    if len(found) < 2 or not all(_ITEM.match(line) for line in found):
        return []
    return [_MARKER.sub("", line).strip() for line in found]


def plain_sentences(answer: str) -> list[str]:
    """Return the sentences of one paragraph of prose whose ends are beyond doubt, else nothing.

    Beyond doubt: there are as many ends of sentences as marks that could end one.
    """
    if not is_prose(answer) or "\n" in answer.strip():
        return []
    found = sentences(answer)
    ended = all(one.rstrip("\"'”’)]").endswith((".", "!", "?")) for one in found)
    doubtful = len(_END.findall(answer)) != len(found) or not ended
    return [] if doubtful or any(len(words(one)) < 3 for one in found) else found
