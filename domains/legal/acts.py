"""Names of Acts and regulations: recognition among entities, and matching."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from casewright.domains.legal.entity_words import words

#: The last words of the names of Acts and other instruments.
INSTRUMENTS = words(
    "act acts bill code constitution convention charter decree directive instrument law ordinance "
    "order proclamation protocol regulation regulations rules statute treaty"
)
#: Words that do not distinguish Acts.
_COMMON = INSTRUMENTS | words("and of for the in on to section s")
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_JURISDICTION = re.compile(r"[(\[][^()\[\]]{0,40}[)\]]\s*$")


def is_act(name: str) -> bool:
    """Return ``True`` if an entity is the name of an Act, regulation or other instrument."""
    parts = act_key(name).split()
    if parts and _YEAR.fullmatch(parts[-1]):
        parts = parts[:-1]
    return len(parts) > 1 and parts[-1] in INSTRUMENTS


def act_key(name: str) -> str:
    """Return the name of an Act in lower case, without jurisdiction and article.

    ``the Residential Tenancies Act 2009 (Ard)`` gives ``residential tenancies act 2009``.
    """
    parts = _WORD.findall(_JURISDICTION.sub("", name.casefold()))
    return " ".join(parts[1:] if parts[:1] == ["the"] else parts)


def act_keys(names: Iterable[str]) -> list[str]:
    """Return the keys of the Acts among names, with and without their years."""
    keys = []
    for name in names:
        if is_act(name):
            key = act_key(name)
            keys += [key, " ".join(_YEAR.sub("", key).split())]
    return list(dict.fromkeys(keys))


def matching_keys(text: str, known: Collection[str]) -> list[str]:
    """Return the keys of the Acts that a text may mean.

    The result is the Act with this name; else the Acts whose full names are in the text; else the
    Acts whose names have all distinctive words of the text. Years in the text must match the Act's
    year.
    """
    key = act_key(text)
    if key in known:
        return [key]
    inside = [other for other in known if _is_in(other, key)]
    if inside:
        # If a key with a year matches, the key without the year matches too.
        return sorted(k for k in inside if not any(k in other for other in inside if k != other))
    years = set(_YEAR.findall(key))
    distinctive = set(key.split()) - _COMMON
    if not distinctive - years:
        return []
    return sorted(other for other in known if distinctive <= set(other.split()))


def _is_in(key: str, text: str) -> bool:
    """Return ``True`` if an Act's full name is in a text, and no other year follows."""
    start = f" {text} ".find(f" {key} ")
    return start >= 0 and _YEAR.match(text, start + len(key) + 1) is None
