"""Groundedness: a sentence of a worded answer is borne out by the evidence that it cites, or not.

Two adjacent parts of one piece of evidence must have at least half of the sentence's content words,
and the evidence all of its numbers. The share was chosen on SciFact's training claims
(``casewright bench answers --claims``). Words show what a text is about: a sentence that
contradicts its evidence in the evidence's own words is not found. What says that something was not
found, and other languages than English, are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import regex

from casewright.graph.evidence import Evidence
from casewright.graph.generator import ID
from casewright.graph.quotable import quotables
from casewright.stores.feedback.features import STOPWORDS
from casewright.stores.feedback.sufficiency import content_words

#: Least share of a sentence's content words in two adjacent parts of its evidence.
SUPPORTED = 0.5
#: Stands where an unsupported sentence had its citations.
MARK = "[unsupported]"
#: A longer sentence with a smaller share of English stop words is in another language: unchecked.
WORDS, ENGLISH = 6, 0.15

_END = regex.compile(r"(?<=[.!?](?:\s*\[E\d+\])*)\s+(?=[^\s\da-z\[])|\n+")
#: The citations at the end of a sentence, or within it.
CITATIONS = re.compile(r"\s*\[E[0-9][^\]]*\]")
#: "The evidence does not say …", "There is no mention of …".
_NOTHING = re.compile(
    r"\b(?:not|no|nothing|never|cannot|n't)\b.*"
    r"\b(?:say|said|found|mention|state|specif|provide|include|contain|inform|know|answer|evidence)",
    re.I,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, each with its citations."""
    return [sentence for sentence in _END.split(text) if sentence.strip()]


def share_in(sentence: str, parts: Sequence[str]) -> float:
    """Return the largest share of the sentence's content words in two adjacent parts."""
    words, found = content_words(sentence), [content_words(part) for part in parts]
    both = (len(words & (one | other)) for one, other in pairwise([*found, frozenset[str]()]))
    return max(both, default=0) / len(words) if words else 1.0


def is_supported(sentence: str, evidence: Sequence[Evidence], missing: Sequence[str] = ()) -> bool:
    """Return True if the evidence bears out a sentence: what it cites, or any if it cites nothing.

    ``missing`` says what was not found, which a sentence may repeat.
    """
    cited = {id_ for match in CITATIONS.findall(sentence) for id_ in ID.findall(match)}
    bare = CITATIONS.sub("", sentence)
    words = re.findall(r"[^\W\d_]+", bare.lower())
    if len(words) > WORDS and sum(word in STOPWORDS for word in words) < ENGLISH * len(words):
        return True
    if _NOTHING.search(bare):
        return True
    texts = [item.text for item in evidence if not cited or item.id in cited]
    if not cited:
        texts += missing
    numbers = set(_NUMBER.findall(bare))
    return any(
        numbers <= set(_NUMBER.findall(text)) and share_in(bare, list(_parts(text))) >= SUPPORTED
        for text in texts
    )


def marked(text: str, evidence: Sequence[Evidence], missing: Sequence[str] = ()) -> str:
    """Return the text with ``MARK`` in place of the citations of unsupported sentences.

    Without evidence there is nothing to check by.
    """
    for sentence in sentences(text) if evidence else ():
        if not is_supported(sentence, evidence, missing):
            bare = CITATIONS.sub("", sentence).rstrip()
            text = text.replace(sentence, f"{bare} {MARK}", 1)
    return text


def _parts(text: str) -> Iterator[str]:
    for part in quotables(text):
        yield f"{part.heading} {part.text}"
