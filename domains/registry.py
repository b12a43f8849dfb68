"""Finding a domain by its name."""

from __future__ import annotations

from typing import Any

from casewright.domains.domain import Domain
from casewright.domains.python_file import is_place, object_of
from casewright.errors import InputError
from casewright.extensions import extension, extensions, listed

_WANTED = "what own_domain of casewright.domains returns"


def domain_names() -> list[str]:
    """Return the names of all installed domains: those of ours and of other packages."""
    return list(extensions("domain"))


def check_domain(name: str) -> None:
    """Look whether there is a domain of this name; no domain is imported, and no file is run.

    Raises:
        InputError: There is none; lists those that there are.
    """
    if not is_place(name) and name not in extensions("domain"):
        raise InputError(
            f"There is no domain {name!r}. Domains are: {listed('domain')}; one of your own is "
            "FILE.py:NAME."
        )


def find_domain(name: str) -> Domain:
    """Return the domain of this name; ``FILE.py:NAME`` is one of the user's own.

    Raises:
        InputError: There is none; lists those that there are.
    """
    if is_place(name):
        return _of_file(name)
    check_domain(name)
    return _checked(extension("domain", name), f"The domain {name}")


def _of_file(place: str) -> Domain:
    found = _checked(object_of(place, "--domain", _WANTED), f"--domain {place}")
    if found.name in extensions("domain"):
        raise InputError(f"--domain {place}: {found.name!r} is a packaged domain's. Name it else.")
    return found


def _checked(found: Any, what: str) -> Domain:
    if not isinstance(found, Domain):
        raise InputError(f"{what}: its name is a {type(found).__name__}. Name {_WANTED}.")
    return found
