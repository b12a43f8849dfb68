"""Tenants: a store that is bound to a tenant writes and sees only that tenant's cases."""

from __future__ import annotations

from dataclasses import replace

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.engines.engine import Point, Where
from casewright.stores.schema import CaseSchema
from casewright.stores.where import check_where

#: The metadata field with a case's tenant.
TENANT = "tenant"


def checked_tenant(tenant: str | None, schema: CaseSchema) -> str | None:
    """Return the tenant of a store; raise ``InputError`` if it is invalid or missing."""
    if tenant is None and schema.tenanted:
        problem = f"The cases of schema {schema.name!r} belong to tenants."
        advice = "Open its store with tenant=; it then writes and sees only that tenant's cases."
        raise InputError(f"{problem} {advice}")
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise InputError(f"A store was opened for the tenant {tenant!r}. Give its name as a text.")
    return tenant


def with_tenant(where: Where | None, tenant: str | None) -> Where | None:
    """Return ``where`` with a condition on the tenant; raise ``InputError`` if it is invalid."""
    check_where(where)
    if tenant is None:
        return where
    conditions = {TENANT: tenant, **(where or {})}
    if conditions[TENANT] != tenant:
        raise InputError(
            f"where asks for the tenant {conditions[TENANT]!r}, in a store of the tenant "
            f"{tenant!r}. Leave it out: the store has only this tenant's cases."
        )
    return conditions


def case_of_tenant(case: Case, tenant: str | None) -> Case:
    """Return a case with the tenant; raise ``InputError`` if the case has another, or several."""
    case_tenant = case.metadata.get(TENANT)
    # A condition matches any item of a list, so a tenant must be a single value.
    if case_tenant is not None and not isinstance(case_tenant, (str, int)):
        advice = "Give one tenant, as a text; add a case of several tenants once for each."
        raise InputError(f"A case belongs to the tenant {case_tenant!r:.200}. {advice}")
    if tenant is None:
        return case
    if case.metadata.get(TENANT, tenant) != tenant:
        raise InputError(
            f"A case of the tenant {case.metadata[TENANT]!r} was given to a store of the tenant "
            f"{tenant!r}. Give it to that tenant's store."
        )
    return replace(case, metadata={**case.metadata, TENANT: tenant})


def is_visible(point: Point, tenant: str | None) -> bool:
    """Return ``True`` if a tenant's store may see a point."""
    return tenant is None or (point.payload.get("metadata") or {}).get(TENANT) == tenant
