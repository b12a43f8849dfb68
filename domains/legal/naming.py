"""Whether a question names a case: lawyers cite by both parties, or by one of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from casewright.domains.legal.entity_words import COMPANY_ENDS, GENERIC, OPENERS

#: How surely a case is named: not at all, by one party, by both, by both in order or the whole
#: name, by the neutral citation.
NOT, ONE_PARTY, PARTIES, NAME, CITATION = range(5)
#: A party's name that is on more citations than this names none of them.
MOST_OF_ONE_PARTY = 2

Party = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")
_FORMS = COMPANY_ENDS | {"co", "pty"}


def named_by(question: str, citations: Sequence[str]) -> list[int]:
    """Return how surely a question names each of some cases.

    ``In Halloran, …`` names ``Halloran v Minister for Water [2008] ArdSC 121`` by one party,
    where no third case has that name; ``halloran v minister for water`` names it by both.
    """
    words = _WORD.findall(question)
    asked = [word.casefold() for word in words]
    capitals = {low for low, word in zip(asked, words, strict=True) if word[0].isupper()}
    plain = " ".join(question.split())
    parties = [_parties(citation) for citation in citations]
    carried = Counter(party for several in parties for party in set(several))
    rare = {party for party, count in carried.items() if count <= MOST_OF_ONE_PARTY}

    def level(citation: str, several: Sequence[Party]) -> int:
        if _neutral(citation) in plain:
            return CITATION
        if len(several) == 1:
            return NAME if set(several[0]) <= set(asked) else NOT
        first = [party[0] for party in several]
        if set(first) <= set(asked):
            places = [asked.index(word) for word in first]
            return NAME if places == sorted(places) else PARTIES
        alone = any(
            party in rare and party[0] in capitals - OPENERS - GENERIC and set(party) <= set(asked)
            for party in several
        )
        return ONE_PARTY if alone else NOT

    levels = [level(*item) for item in zip(citations, parties, strict=True)]
    # Who names both parties of one case does not mean the other cases of a party.
    least = PARTIES if max(levels, default=NOT) >= PARTIES else ONE_PARTY
    return [found if found >= least else NOT for found in levels]


def _parties(citation: str) -> list[Party]:
    """Return the words of each party, in small letters, without what makes it a company."""
    name = citation.partition("[")[0].casefold()
    found = [
        tuple(word for word in _WORD.findall(party) if word not in _FORMS)
        for party in re.split(r"\bv\b", name)
    ]
    return [party or ("",) for party in found]


def _neutral(citation: str) -> str:
    """Return the neutral citation, ``[2008] ArdSC 121``; where there is none, the whole."""
    _, bracket, rest = citation.partition("[")
    return bracket + rest if bracket else citation
