"""Who asks within a domain: the values of its scope fields, given, by default, or refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from casewright.errors import InputError

Scopes = Mapping[str, Sequence[str]]
#: Words by which tenants are called.
_TENANTS = {
    *("account", "client", "company", "enterprise", "firm", "org", "organisation"),
    *("organization", "tenant", "workspace", "accountid", "companyid", "orgid", "tenantid"),
}


def read_scope(given: Sequence[str] | None, short: Mapping[str, str]) -> dict[str, str]:
    """Read who asks from ``FIELD=VALUE`` texts, and from fields that are options themselves.

    Raises:
        InputError: A text has another form, or a field is given twice.
    """
    texts = [*(given or ()), *(f"{field}={value}" for field, value in short.items())]
    scope: dict[str, str] = {}
    for text in texts:
        field, sign, value = text.partition("=")
        if not (field and sign and value):
            raise InputError(f"--scope {text} says nobody. Write FIELD=VALUE.")
        if field in scope:
            raise InputError(f"The scope field {field!r} is given twice. Give it once.")
        scope[field] = value
    return scope


def demo_scope(known: Scopes) -> dict[str, str]:
    """Return the first values of the fields that have any."""
    return {field: values[0] for field, values in known.items() if values}


def scope_of(known: Scopes, given: Mapping[str, str], *, listed: bool = False) -> dict[str, str]:
    """Return who asks: what was given, else the first values.

    Args:
        known: Scope field to its values; one without any takes any, and has to be given.
        given: What the request names.
        listed: Whether an error may list the values: users of a service are nobody else's business.

    Raises:
        InputError: A field or a value that is not known, or a field that has to be given.
    """
    for field, value in given.items():
        if field not in known:
            fields = ", ".join(sorted(known)) or "none"
            raise InputError(f"There is no scope field {field!r:.80}. There are: {fields}.")
        if known[field] and value not in known[field]:
            there = f" There are: {', '.join(known[field])}." if listed else ""
            raise InputError(f"There is no {field} {value!r:.80}.{there}")
    scope = {**demo_scope(known), **given}
    check_whole(known, scope)
    return scope


def asker_of(
    known: Scopes, given: Sequence[str] | None, short: Mapping[str, str], tenant: str | None
) -> dict[str, str]:
    """Return who asks on the command line: the scope, with the tenant that tools find in it.

    Raises:
        InputError: See ``read_scope`` and ``scope_of``; or the tenant is empty.
    """
    scope = scope_of(known, read_scope(given, short), listed=True)
    if tenant is None:
        return scope
    if not tenant.strip():
        raise InputError("--tenant is empty. Name whose cases the tools are to look up.")
    return {**scope, "tenant": tenant}


def like_a_tenant(known: Scopes, tenants: Collection[str]) -> list[str]:
    """Return the scope fields that look as if they said whose request it is, sorted.

    A request says its scope itself, and its tenant never: see ``casewright.tools.Tenant``.

    Args:
        known: Scope field to its values.
        tenants: Those that have tokens; without any nobody is kept apart.
    """
    if not tenants:
        return []
    return sorted(
        field
        for field, values in known.items()
        if set(re.split(r"[\W_]+", field.casefold())) & _TENANTS or set(values) & set(tenants)
    )


def check_whole(known: Scopes, given: Mapping[str, str]) -> None:
    """Look whether every field is given.

    Raises:
        InputError: One is missing; says which.
    """
    if missing := sorted(known.keys() - given.keys()):
        raise InputError(
            f"The scope does not say who asks: give it with {', '.join(missing)} "
            f"(--scope {missing[0]}=VALUE on the command line). It is not kept from one request to "
            "the next."
        )
