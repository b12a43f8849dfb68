"""The scope of a question: values of the domain's scope fields, which identify the user."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from casewright.errors import InputError

#: The listed values of each scope field.
ScopeFields = Mapping[str, Sequence[str]]
#: Words in the names of scope fields that may identify a tenant.
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
    """Return a request's scope; the default of a field is its first listed value.

    A field without listed values accepts any value and is required. Errors list values only if
    ``list_values`` is true, since a service must not reveal its users. Raise ``InputError`` if a
    field or a value is unknown, or a required field is missing.
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
    """Return the scope fields that may identify a tenant, sorted; empty if there are no tenants.

    A request's tenant is authenticated, but its scope is not; see ``casewright.tools.Tenant``.
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
