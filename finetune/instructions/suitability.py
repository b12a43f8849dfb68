"""What an answer's text allows to be done with it."""

from __future__ import annotations

import re
from functools import lru_cache

from casewright.finetune.instructions.words import lines, sentences, words

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
_LISTED = re.compile(r"^\s*(?:[-+*•–]|\(?[0-9]{1,2}[.):]|\(?[a-hA-H][.)]|Step [0-9]+:)\s+\S")
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
    if len(found) < 2 or not all(_LISTED.match(line) for line in found):
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
