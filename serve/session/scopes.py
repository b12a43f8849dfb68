"""The scope of a question: values of the domain's scope fields, which identify the user."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from casewright.errors import InputError

Scopes = Mapping[str, Sequence[str]]
#: Words in the names of fields that may identify a tenant.
_TENANTS = {
    *("account", "client", "company", "enterprise", "firm", "org", "organisation"),
    *("organization", "tenant", "workspace", "accountid", "companyid", "orgid", "tenantid"),
}


def demo_scope(known: Scopes) -> dict[str, str]:
    """Return the first value of each field that has values."""
    return {field: values[0] for field, values in known.items() if values}


def scope_of(known: Scopes, values: Mapping[str, str], *, listed: bool = False) -> dict[str, str]:
    """Return a request's scope, completed by the first values of the domain's fields.

    A field without listed values accepts any value and is required. Errors list values only if
    ``listed`` is true, since a service must not reveal its users. Raise ``InputError`` if a field
    or a value is unknown, or a required field is missing.
    """
    for field, value in values.items():
        if field not in known:
            fields = ", ".join(sorted(known)) or "none"
            raise InputError(f"There is no scope field {field!r:.80}. There are: {fields}.")
        if known[field] and value not in known[field]:
            others = f" There are: {', '.join(known[field])}." if listed else ""
            raise InputError(f"There is no {field} {value!r:.80}.{others}")
    scope = {**demo_scope(known), **values}
    check_whole(known, scope)
    return scope


def like_a_tenant(known: Scopes, tenants: Collection[str]) -> list[str]:
    """Return the scope fields that may identify a tenant, sorted; empty if there are no tenants.

    The scope of a request is not authenticated, but the tenant is: see ``casewright.tools.Tenant``.
    """
    if not tenants:
        return []
    return sorted(
        field
        for field, values in known.items()
        if set(re.split(r"[\W_]+", field.casefold())) & _TENANTS or set(values) & set(tenants)
    )


def check_whole(known: Scopes, scope: Mapping[str, str]) -> None:
    """Require all scope fields: raise ``InputError`` if one is missing."""
    if missing := sorted(known.keys() - scope.keys()):
        raise InputError(
            f"The scope lacks {', '.join(missing)}: give all fields in each request "
            f"(--scope {missing[0]}=VALUE on the command line)."
        )
