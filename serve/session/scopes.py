"""Completes and checks the scope of a question: a value for each field, such as ``customer``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from casewright.errors import InputError

#: The values that a domain lists for each scope field, the default first.
ScopeFields = Mapping[str, Sequence[str]]
#: A scope field may identify a tenant if its name has one of these words.
_TENANT_WORDS = {
    *("account", "client", "company", "enterprise", "firm", "org", "organisation"),
    *("organization", "tenant", "workspace", "accountid", "companyid", "orgid", "tenantid"),
}


def default_scope(fields: ScopeFields) -> dict[str, str]:
    """Return the first value of each field that has values."""
    return {field: values[0] for field, values in fields.items() if values}


def scope_of(
    fields: ScopeFields, values: Mapping[str, str], *, list_values: bool = False
) -> dict[str, str]:
    """Return a scope with these values; every other field gets its first listed value.

    A field without listed values accepts any value and is required. An error lists values only if
    ``list_values`` is true: a service must not reveal its users. Raise ``InputError`` if a field or
    a value is unknown, or a required field is missing.
    """
    for field, value in values.items():
        if field not in fields:
            names = ", ".join(sorted(fields)) or "none"
            raise InputError(f"There is no scope field {field!r:.80}. There are: {names}.")
        if fields[field] and value not in fields[field]:
            choices = f" There are: {', '.join(fields[field])}." if list_values else ""
            raise InputError(f"There is no {field} {value!r:.80}.{choices}")
    scope = {**default_scope(fields), **values}
    require_all_fields(fields, scope)
    return scope


def tenant_like_fields(fields: ScopeFields, tenants: Collection[str]) -> list[str]:
    """Return the sorted scope fields that may identify a tenant, by their name or a value.

    The service warns of such fields: it authenticates the tenant of a request, but not the scope.
    """
    if not tenants:
        return []
    return sorted(
        field
        for field, values in fields.items()
        if set(re.split(r"[\W_]+", field.casefold())) & _TENANT_WORDS or set(values) & set(tenants)
    )


def require_all_fields(fields: ScopeFields, scope: Mapping[str, str]) -> None:
    """Raise ``InputError`` if a scope lacks a field."""
    if missing := sorted(fields.keys() - scope.keys()):
        raise InputError(
            f"The scope lacks {', '.join(missing)}: give all fields in each request "
            f"(--scope {missing[0]}=VALUE on the command line)."
        )
