"""Domains by name."""

from __future__ import annotations

from typing import Any

from casewright.domains.domain import Domain
from casewright.domains.python_file import is_place, object_of
from casewright.errors import InputError
from casewright.extensions import extension, extensions, listed

_EXPECTED = "a domain, made by own_domain of casewright.domains"


def domain_names() -> list[str]:
    """Return the names of all installed domains."""
    return list(extensions("domain"))


def check_domain(name: str) -> None:
    """Raise ``InputError`` for an unknown domain, without importing a domain or running a file."""
    if not is_place(name) and name not in extensions("domain"):
        raise InputError(
            f"There is no domain {name!r}. Domains are: {listed('domain')}; name your own as "
            "FILE.py:NAME."
        )


def find_domain(name: str) -> Domain:
    """Return the domain of a name or ``FILE.py:NAME``; raise ``InputError`` if there is none."""
    if not is_place(name):
        check_domain(name)
        return _checked(extension("domain", name), f"The domain {name}")
    domain = _checked(object_of(name, "--domain", _EXPECTED), f"--domain {name}")
    if domain.name in extensions("domain"):
        raise InputError(
            f"--domain {name}: {domain.name!r} is a packaged domain's name. Choose another one."
        )
    return domain


def _checked(value: Any, source: str) -> Domain:
    if not isinstance(value, Domain):
        raise InputError(f"{source}: its name is a {type(value).__name__}. Name {_EXPECTED}.")
    return value
