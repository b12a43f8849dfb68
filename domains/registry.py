"""Finds domains by name."""

from __future__ import annotations

from typing import Any

from casewright.domains.domain import Domain
from casewright.domains.python_file import is_file_reference, load_object
from casewright.errors import InputError
from casewright.extensions import extension, extensions, listed

_DOMAIN_TEXT = "a domain, made by own_domain of casewright.domains"


def domain_names() -> list[str]:
    """Return the names of all installed domains."""
    return list(extensions("domain"))


def check_domain(name: str) -> None:
    """Raise ``InputError`` for an unknown name, without importing a domain or running a file."""
    if not is_file_reference(name) and name not in extensions("domain"):
        raise InputError(
            f"There is no domain {name!r}. Domains are: {listed('domain')}; name your own as "
            "FILE.py:NAME."
        )


def find_domain(name: str) -> Domain:
    """Return the domain with a name or ``FILE.py:NAME``; raise ``InputError`` if there is none."""
    if not is_file_reference(name):
        check_domain(name)
        return _require_domain(extension("domain", name), f"The domain {name}")
    domain = _require_domain(load_object(name, "--domain", _DOMAIN_TEXT), f"--domain {name}")
    if domain.name in extensions("domain"):
        raise InputError(
            f"--domain {name}: {domain.name!r} is a packaged domain's name. Choose another one."
        )
    return domain


def _require_domain(value: Any, source: str) -> Domain:
    if not isinstance(value, Domain):
        raise InputError(f"{source} names a {type(value).__name__}. Name {_DOMAIN_TEXT}.")
    return value
