"""Groundedness: finds sentences of an answer that are not supported by their cited evidence.

A sentence is supported if one piece of evidence contains all numbers of the sentence, and two
adjacent parts of this evidence (see ``quotables``) contain at least half of the sentence's content
words. This share was chosen on SciFact's training claims (``casewright bench answers --claims``).
A sentence that contradicts its evidence in the same words counts as supported, since only words are
compared. A sentence also counts as supported if it is not English, or says that something was not
found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import regex

from casewright.graph.evidence import Evidence
from casewright.graph.generator import EVIDENCE_ID
from casewright.stores.documents.quotable import quotables
from casewright.stores.feedback.features import STOPWORDS
from casewright.stores.feedback.sufficiency import content_words

#: Minimum share of a sentence's content words in two adjacent parts of its evidence.
MIN_SUPPORT = 0.5
#: Replaces the citations of an unsupported sentence.
MARK = "[unsupported]"
#: A sentence counts as English if it has at most ``SHORT_WORD_COUNT`` words, or if the share of
#: English stop words is at least ``MIN_STOP_WORD_SHARE``.
SHORT_WORD_COUNT, MIN_STOP_WORD_SHARE = 6, 0.15

_SENTENCE_END = regex.compile(r"(?<=[.!?](?:\s*\[E\d+\])*)\s+(?=[^\s\da-z\[])|\n+")
#: Matches citations in brackets, such as ``[E1]`` or ``[E1, E2]``, with the space before them.
CITATIONS = re.compile(r"\s*\[E[0-9][^\]]*\]")
#: Matches "The evidence does not say …", "There is no mention of …" and the like.
_NOT_FOUND = re.compile(
    r"\b(?:not|no|nothing|never|cannot|n't)\b.*"
    r"\b(?:say|said|found|mention|state|specif|provide|include|contain|inform|know|answer|evidence)",
    re.I,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, each with its citations."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def adjacent_share(sentence: str, parts: Sequence[str]) -> float:
    """Return the share of a sentence's content words that the best two adjacent parts contain."""
    words, part_words = content_words(sentence), [content_words(part) for part in parts]
    # With the empty set, a single part makes a pair too.
    pairs = pairwise([*part_words, frozenset[str]()])
    counts = (len(words & (first | second)) for first, second in pairs)
    return max(counts, default=0) / len(words) if words else 1.0


def is_supported(sentence: str, evidence: Sequence[Evidence], missing: Sequence[str] = ()) -> bool:
    """Return True if the cited evidence, or any evidence if none is cited, supports a sentence.

    ``missing`` has sentences on steps without results; a sentence without citations may repeat one.
    """
    cited_ids = {id_ for match in CITATIONS.findall(sentence) for id_ in EVIDENCE_ID.findall(match)}
    claim = CITATIONS.sub("", sentence)
    words = re.findall(r"[^\W\d_]+", claim.lower())
    stop_count = sum(word in STOPWORDS for word in words)
    is_foreign = len(words) > SHORT_WORD_COUNT and stop_count < MIN_STOP_WORD_SHARE * len(words)
    if is_foreign or _NOT_FOUND.search(claim):
        return True
    texts = [item.text for item in evidence if not cited_ids or item.id in cited_ids]
    if not cited_ids:
        texts += missing
    numbers = set(_NUMBER.findall(claim))
    for text in texts:
        if numbers <= set(_NUMBER.findall(text)):
            parts = [f"{part.heading} {part.text}" for part in quotables(text)]
            if adjacent_share(claim, parts) >= MIN_SUPPORT:
                return True
    return False


def mark_unsupported(text: str, evidence: Sequence[Evidence], missing: Sequence[str] = ()) -> str:
    """Return the text with ``MARK`` in place of the citations of unsupported sentences.

    Without evidence, the text is returned unchanged.
    """
    for sentence in sentences(text):
        if evidence and not is_supported(sentence, evidence, missing):
            claim = CITATIONS.sub("", sentence).rstrip()
            text = text.replace(sentence, f"{claim} {MARK}", 1)
    return text
