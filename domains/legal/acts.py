"""Names of Acts and regulations: which entities are some, and when two name the same one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from casewright.domains.legal.entity_words import words

#: What an Act, or what is made under one, may be called; its name ends in one of these.
INSTRUMENTS = words(
    "act acts bill code constitution convention charter decree directive instrument law ordinance "
    "order proclamation protocol regulation regulations rules statute treaty"
)
#: Tell no Act from another.
_COMMON = INSTRUMENTS | words("and of for the in on to section s")
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_JURISDICTION = re.compile(r"[(\[][^()\[\]]{0,40}[)\]]\s*$")


def is_act(name: str) -> bool:
    """Say whether an entity is the name of an Act, regulation or other instrument."""
    parts = act_key(name).split()
    if parts and _YEAR.fullmatch(parts[-1]):
        parts = parts[:-1]
    return len(parts) > 1 and parts[-1] in INSTRUMENTS


def act_key(name: str) -> str:
    """Return what two names of one Act have in common: no jurisdiction, capitals or article.

    ``the Residential Tenancies Act 2009 (Ard)`` gives ``residential tenancies act 2009``.
    """
    parts = _WORD.findall(_JURISDICTION.sub("", name.casefold()))
    return " ".join(parts[1:] if parts[:1] == ["the"] else parts)


def act_keys(names: Iterable[str]) -> list[str]:
    """Return the keys that find each of these Acts: with its year, and without."""
    keys = []
    for name in names:
        if is_act(name):
            key = act_key(name)
            keys += [key, " ".join(_YEAR.sub("", key).split())]
    return list(dict.fromkeys(keys))


def matching_keys(asked: str, known: Collection[str]) -> list[str]:
    """Return the keys of the Acts that somebody may mean.

    That is the Act of this name; else those whose whole names stand in what was asked; else those
    whose names hold every telling word of it. A year that was asked for must be the Act's.

    Args:
        asked: What somebody calls an Act, perhaps with more around it, or less of its name.
        known: Keys of all Acts that there are.
    """
    key = act_key(asked)
    if key in known:
        return [key]
    inside = [other for other in known if _stands_in(other, key)]
    if inside:
        # With an Act's year, its key without the year stands there too.
        return sorted(one for one in inside if not any(one in two for two in inside if one != two))
    years = set(_YEAR.findall(key))
    telling = set(key.split()) - _COMMON
    if not telling - years:
        return []
    return sorted(other for other in known if telling <= set(other.split()))


def _stands_in(key: str, asked: str) -> bool:
    """Say whether an Act's whole name stands in what was asked, with no other year after it."""
    at = f" {asked} ".find(f" {key} ")
    return at >= 0 and _YEAR.match(asked, at + len(key) + 1) is None
