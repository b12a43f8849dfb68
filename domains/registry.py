"""Finding a domain by its name."""

from __future__ import annotations

from importlib import import_module

from casewright.domains.domain import Domain
from casewright.domains.python_file import is_place, object_of
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
    """Return the domain of this name; ``FILE.py:NAME`` is one of the user's own.

    Raises:
        InputError: There is none; lists those that there are.
    """
    if is_place(name):
        return _of_file(name)
    if name not in _MODULES:
        raise InputError(
            f"There is no domain {name!r}. Domains are: {', '.join(domain_names())}; "
            "one of your own is FILE.py:NAME."
        )
    found: Domain = import_module(_MODULES[name]).DOMAIN
    return found


def _of_file(place: str) -> Domain:
    wanted = "what own_domain of casewright.domains returns"
    found = object_of(place, "--domain", wanted)
    if not isinstance(found, Domain):
        raise InputError(f"--domain {place}: its name is a {type(found).__name__}. Name {wanted}.")
    if found.name in _MODULES:
        raise InputError(f"--domain {place}: {found.name!r} is a packaged domain's. Name it else.")
    return found
