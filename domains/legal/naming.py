"""Recognition of cases in a question, by both parties or by one of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from casewright.domains.legal.entity_words import COMPANY_ENDS, GENERIC, OPENERS

#: Levels of certainty that a case is named: not named; one party; both parties; both in order, or
#: the full name; the neutral citation.
NOT, ONE_PARTY, PARTIES, NAME, CITATION = range(5)
#: Maximum number of citations of a party whose name alone identifies a case.
MAX_CITATIONS = 2

Party = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")
_FORMS = COMPANY_ENDS | {"co", "pty"}


def named_by(question: str, citations: Sequence[str]) -> list[int]:
    """Return the level of certainty that a question names each case.

    ``In Halloran, …`` names ``Halloran v Minister for Water [2008] ArdSC 121`` by one party, if no
    third case has that party; ``halloran v minister for water`` names it by both parties.
    """
    words = _WORD.findall(question)
    lower = [word.casefold() for word in words]
    capitals = {low for low, word in zip(lower, words, strict=True) if word[0].isupper()}
    plain = " ".join(question.split())
    parties = [_parties(citation) for citation in citations]
    counts = Counter(party for case_parties in parties for party in set(case_parties))
    rare = {party for party, count in counts.items() if count <= MAX_CITATIONS}

    def level(citation: str, case_parties: Sequence[Party]) -> int:
        if _neutral(citation) in plain:
            return CITATION
        if len(case_parties) == 1:
            return NAME if set(case_parties[0]) <= set(lower) else NOT
        first = [party[0] for party in case_parties]
        if set(first) <= set(lower):
            positions = [lower.index(word) for word in first]
            return NAME if positions == sorted(positions) else PARTIES
        one_party = any(
            party in rare and party[0] in capitals - OPENERS - GENERIC and set(party) <= set(lower)
            for party in case_parties
        )
        return ONE_PARTY if one_party else NOT

    levels = [level(*item) for item in zip(citations, parties, strict=True)]
    # A question with both parties of a case does not mean other cases of one of these parties.
    least = PARTIES if max(levels, default=NOT) >= PARTIES else ONE_PARTY
    return [item if item >= least else NOT for item in levels]


def _parties(citation: str) -> list[Party]:
    """Return the casefolded words of each party, without words such as ``Ltd``."""
    name = citation.partition("[")[0].casefold()
    parties = [
        tuple(word for word in _WORD.findall(party) if word not in _FORMS)
        for party in re.split(r"\bv\b", name)
    ]
    return [party or ("",) for party in parties]


def _neutral(citation: str) -> str:
    """Return the neutral citation, ``[2008] ArdSC 121``; the full citation if there is none."""
    _, bracket, rest = citation.partition("[")
    return bracket + rest if bracket else citation
