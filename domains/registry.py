"""Finding a domain by its name."""

from __future__ import annotations

from importlib import import_module

from casewright.domains.domain import Domain
from casewright.errors import InputError

#: Name to the module that holds ``DOMAIN``; imported when asked for.
_MODULES = {
    "backgammon": "casewright.domains.backgammon.domain",
    "code": "casewright.domains.code.domain",
    "documents": "casewright.domains.documents.domain",
    "legal": "casewright.domains.legal.domain",
    "math24": "casewright.domains.math24.domain",
    "shopping": "casewright.domains.shopping.domain",
}


def domain_names() -> list[str]:
    """Return the names of all domains."""
    return sorted(_MODULES)


def find_domain(name: str) -> Domain:
    """Return the domain of this name.

    Raises:
        InputError: There is none; lists those that there are.
    """
    if name not in _MODULES:
        raise InputError(f"There is no domain {name!r}. Domains are: {', '.join(domain_names())}.")
    found: Domain = import_module(_MODULES[name]).DOMAIN
    return found
