"""Whose cases: a store that is bound to a tenant writes and sees that tenant's cases only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.engines.engine import Point, Where

if TYPE_CHECKING:
    from casewright.stores.schema import CaseSchema

#: The metadata field that says whose a case is.
FIELD = "tenant"


def owner(tenant: str | None, schema: CaseSchema) -> str | None:
    """Return the tenant that a store is to be bound to.

    Raises:
        InputError: It is no text or an empty one, or the schema asks for one and there is none.
    """
    if tenant is None and schema.tenanted:
        raise InputError(
            f"The cases of schema {schema.name!r} belong to tenants. Open its store with tenant=, "
            "whose it then writes and sees."
        )
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise InputError(f"A store was opened for the tenant {tenant!r}. Name it by a text.")
    return tenant


def within(where: Where | None, tenant: str | None) -> Where | None:
    """Return conditions narrowed to a tenant's cases.

    Raises:
        InputError: They ask for another tenant's.
    """
    if tenant is None:
        return where
    if (where or {}).get(FIELD, tenant) != tenant:
        raise InputError(
            f"where asks for the tenant {(where or {})[FIELD]!r}, in a store of the tenant "
            f"{tenant!r}. Leave it out: the store sees no others."
        )
    return {**(where or {}), FIELD: tenant}


def stamped(case: Case, tenant: str | None) -> Case:
    """Return a case as the tenant's.

    Raises:
        InputError: It is another tenant's, or that of several.
    """
    named = case.metadata.get(FIELD)
    # A condition would find it under each item of a list.
    if named is not None and not isinstance(named, (str, int)):
        raise InputError(
            f"A case belongs to the tenant {named!r:.200}. Name one by a text; a case of several "
            "is added once for each."
        )
    if tenant is None:
        return case
    if case.metadata.get(FIELD, tenant) != tenant:
        raise InputError(
            f"A case of the tenant {case.metadata[FIELD]!r} was given to a store of the tenant "
            f"{tenant!r}. Give it to that tenant's store."
        )
    return replace(case, metadata={**case.metadata, FIELD: tenant})


def owned(point: Point, tenant: str | None) -> bool:
    """Say whether a point is a case that a tenant's store may see."""
    return tenant is None or (point.payload.get("metadata") or {}).get(FIELD) == tenant
