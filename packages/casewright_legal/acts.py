"""Recognition of the names of Acts and regulations, and a search for them by key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from casewright_legal.entity_words import words

#: The last words of the names of Acts and other instruments.
INSTRUMENTS = words(
    "act acts bill code constitution convention charter decree directive instrument law ordinance "
    "order proclamation protocol regulation regulations rules statute treaty"
)
#: Words that do not distinguish Acts.
_COMMON_WORDS = INSTRUMENTS | words("and of for the in on to section s")
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_JURISDICTION = re.compile(r"[(\[][^()\[\]]{0,40}[)\]]\s*$")


def is_act(name: str) -> bool:
    """Return ``True`` if a name is that of an Act, a regulation or another instrument."""
    act_words = act_key(name).split()
    if act_words and _YEAR.fullmatch(act_words[-1]):
        act_words = act_words[:-1]
    return len(act_words) > 1 and act_words[-1] in INSTRUMENTS


def act_key(name: str) -> str:
    """Return the name of an Act in lower case, without a first "the" and without its jurisdiction.

    ``the Residential Tenancies Act 2009 (Ard)`` gives ``residential tenancies act 2009``.
    """
    act_words = _WORD.findall(_JURISDICTION.sub("", name.casefold()))
    return " ".join(act_words[1:] if act_words[:1] == ["the"] else act_words)


def act_keys(names: Iterable[str]) -> list[str]:
    """Return two keys for each name of an Act: with its year, and without."""
    keys = []
    for name in names:
        if is_act(name):
            key = act_key(name)
            keys += [key, " ".join(_YEAR.sub("", key).split())]
    return list(dict.fromkeys(keys))


def matching_keys(text: str, keys: Collection[str]) -> list[str]:
    """Return the keys of the Acts that a text may mean.

    If the text is the name of an Act, the text means only this Act. If not, it means the Acts whose
    full names are in the text, or else the Acts that have the text's distinctive words and year.
    """
    key = act_key(text)
    if key in keys:
        return [key]
    named = [known for known in keys if _is_named_in(known, key)]
    if named:
        # A key with a year contains the key without a year, so only the longest keys are returned.
        shorter = [one for one in named for other in named if one != other and one in other]
        return sorted(one for one in named if one not in shorter)
    years = set(_YEAR.findall(key))
    distinctive = set(key.split()) - _COMMON_WORDS
    if not distinctive - years:
        return []
    return sorted(known for known in keys if distinctive <= set(known.split()))


def _is_named_in(key: str, text: str) -> bool:
    """Return ``True`` if a text contains an Act's name, and no further year follows the name."""
    start = f" {text} ".find(f" {key} ")
    return start >= 0 and _YEAR.match(text, start + len(key) + 1) is None
