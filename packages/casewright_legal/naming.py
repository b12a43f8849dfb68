"""Recognises the cases that a question names, by citation, by name, or by a party."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from casewright_legal.entity_words import COMPANY_ENDS, GENERIC, SENTENCE_OPENERS

#: Levels at which a question names a case, the least certain first: not at all; by one party; by
#: both parties; by both parties in order, or by a name without parties; by its neutral citation.
NOT_NAMED, ONE_PARTY, BOTH_PARTIES, FULL_NAME, CITATION = range(5)
#: The name of a party identifies the party's cases if there are at most this many.
MAX_CASES_OF_PARTY = 2

Party = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")
_COMPANY_FORMS = COMPANY_ENDS | {"co", "pty"}


def naming_levels(question: str, citations: Sequence[str]) -> list[int]:
    """Return the level, ``NOT_NAMED`` to ``CITATION``, at which a question names each case.

    ``In Halloran, …`` names ``Halloran v Minister for Water [2008] ArdSC 121`` by one party, if at
    most one other case has this party. ``halloran v minister for water`` is the full name.
    """
    words = _WORD.findall(question)
    folded = [word.casefold() for word in words]
    capitalised = {word.casefold() for word in words if word[0].isupper()}
    normalised = " ".join(question.split())
    parties = [_parties(citation) for citation in citations]
    case_counts = Counter(party for case_parties in parties for party in set(case_parties))
    rare_parties = {party for party, count in case_counts.items() if count <= MAX_CASES_OF_PARTY}

    def level_of(citation: str, case_parties: Sequence[Party]) -> int:
        if _neutral_citation(citation) in normalised:
            return CITATION
        if len(case_parties) == 1:
            return FULL_NAME if set(case_parties[0]) <= set(folded) else NOT_NAMED
        first_words = [party[0] for party in case_parties]
        if set(first_words) <= set(folded):
            positions = [folded.index(word) for word in first_words]
            return FULL_NAME if positions == sorted(positions) else BOTH_PARTIES
        name_words = capitalised - SENTENCE_OPENERS - GENERIC
        rare = rare_parties.intersection(case_parties)
        named = [party for party in rare if party[0] in name_words]
        return ONE_PARTY if any(set(party) <= set(folded) for party in named) else NOT_NAMED

    levels = list(map(level_of, citations, parties))
    # A question that names both parties of a case does not mean other cases of these parties.
    lowest_level = BOTH_PARTIES if max(levels, default=NOT_NAMED) >= BOTH_PARTIES else ONE_PARTY
    return [level if level >= lowest_level else NOT_NAMED for level in levels]


def _parties(citation: str) -> list[Party]:
    """Return each party's casefolded words, except words such as ``Ltd``; ``("",)`` if none."""
    name = citation.partition("[")[0].casefold()
    return [
        tuple(word for word in _WORD.findall(party) if word not in _COMPANY_FORMS) or ("",)
        for party in re.split(r"\bv\b", name)
    ]


def _neutral_citation(citation: str) -> str:
    """Return the neutral citation, ``[2008] ArdSC 121``, or else the full citation."""
    _, bracket, rest = citation.partition("[")
    return bracket + rest if bracket else citation
