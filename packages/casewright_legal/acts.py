"""Recognises and matches the names of Acts and regulations."""

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
    """Return ``True`` if an entity is the name of an Act, regulation or other instrument."""
    act_words = act_key(name).split()
    if act_words and _YEAR.fullmatch(act_words[-1]):
        act_words = act_words[:-1]
    return len(act_words) > 1 and act_words[-1] in INSTRUMENTS


def act_key(name: str) -> str:
    """Return the name of an Act in lower case, without its jurisdiction and article.

    ``the Residential Tenancies Act 2009 (Ard)`` gives ``residential tenancies act 2009``.
    """
    act_words = _WORD.findall(_JURISDICTION.sub("", name.casefold()))
    return " ".join(act_words[1:] if act_words[:1] == ["the"] else act_words)


def act_keys(names: Iterable[str]) -> list[str]:
    """Return the keys of the names that are Acts, with and without their years."""
    keys = []
    for name in names:
        if is_act(name):
            key = act_key(name)
            keys += [key, " ".join(_YEAR.sub("", key).split())]
    return list(dict.fromkeys(keys))


def matching_keys(text: str, keys: Collection[str]) -> list[str]:
    """Return the keys of the Acts that a text may mean.

    It may mean the Act with this name; if there is none, Acts whose full names are in the text; if
    there are none, Acts with all distinctive words of the text. A year in it must also match.
    """
    key = act_key(text)
    if key in keys:
        return [key]
    named = [other for other in keys if _is_named_in(other, key)]
    if named:
        # A key with a year contains the key without it, so only the longest keys are returned.
        shorter = [one for one in named for other in named if one != other and one in other]
        return sorted(one for one in named if one not in shorter)
    years = set(_YEAR.findall(key))
    distinctive = set(key.split()) - _COMMON_WORDS
    if not distinctive - years:
        return []
    return sorted(other for other in keys if distinctive <= set(other.split()))


def _is_named_in(key: str, text: str) -> bool:
    """Return ``True`` if an Act's full name is in a text, and no other year follows."""
    start = f" {text} ".find(f" {key} ")
    return start >= 0 and _YEAR.match(text, start + len(key) + 1) is None
