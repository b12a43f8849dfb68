"""Converts case stores to tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

from casewright.errors import ToolError
from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best as near_best_hits
from casewright.stores.tenant import TENANT
from casewright.tools.parameter import Parameter, sources_of
from casewright.tools.spec import CallContext, ToolExample, ToolSpec

#: The origin of a result field's value: a metadata field's name, or a function of the hit.
FieldOrigin = str | Callable[[Hit], Any]


class Search(Protocol):
    """Function to use instead of ``CaseStore.search``: for example, a relevance feedback loop."""

    def __call__(
        self, query: str, k: int, where: Mapping[str, Any], context: CallContext
    ) -> Sequence[Hit]:
        """Return at most k hits, the best first."""


def tool_from_store(
    store: CaseStore,
    *,
    name: str,
    description: str,
    results: Mapping[str, FieldOrigin] | None = None,
    filters: Sequence[str] = (),
    scope: Sequence[str] = (),
    per_tenant: bool = False,
    sources: Mapping[str, Iterable[str]] | None = None,
    k: int = 4,
    min_relevance: float = 0.0,
    near_best: float = 0.0,
    lambda_b: float = 1.0,
    search: Search | None = None,
    example: ToolExample | None = None,
) -> ToolSpec:
    """Return a tool that searches a case store by ``query``.

    Args:
        store: The store, which is searched with the default facet weights of its schema.
        results: The name of each result field, with the metadata field or the function of the hit
            that gives its value; by default ``evidence``, with the schema's ``support`` text.
        filters: Metadata fields that become parameters of the tool, before ``query``. A search
            returns only cases whose fields have the arguments' values.
        scope: Metadata fields whose values come from the request's scope, not from a plan. A search
            returns only cases with these values, and nothing if the scope lacks a field.
        per_tenant: True to search the cases of the request's tenant (``store.for_tenant``), even if
            the store was opened for another tenant; a request without a tenant fails. False to
            search the store as it was opened; a store of one tenant then refuses other tenants.
        sources: The allowed sources of each parameter's argument, by the parameter's name.
        example: A question that the tool helps to answer, with the plan.
        k: The maximum number of results.
        min_relevance: The minimum relevance (weighted cosine) of a result.
        near_best: The minimum relevance of a result, as a share of the best hit's relevance.
        lambda_b: The weight of the relevance in the score; the quality has the weight 1 - lambda_b.
        search: A function to use instead of ``CaseStore.search``; it ignores ``min_relevance``,
            ``near_best`` and ``lambda_b``.

    Raises:
        ToolError: ``sources`` names an unknown parameter, or a filter would let a plan choose the
            tenant.
    """
    origin_by_field: Mapping[str, FieldOrigin] = results or {
        "evidence": lambda hit: store.schema.support(hit.case)
    }
    declared = {p: sources_of(source_names, p) for p, source_names in (sources or {}).items()}
    names = [*filters, "query"]
    if unknown := sorted(set(declared) - set(names)):
        raise ToolError(f"Tool {name!r} has no parameter {unknown}; its parameters are {names}.")
    if per_tenant and TENANT in filters:
        raise ToolError(
            f"Tool {name!r} is per tenant, and has a filter by {TENANT!r}, which a plan could "
            "write. Leave the filter out."
        )
    parameters = tuple(
        Parameter(p, kind="string" if p == "query" else "any", sources=declared.get(p, frozenset()))
        for p in names
    )

    def run(arguments: Mapping[str, Any], context: CallContext) -> list[dict[str, Any]]:
        tenant = _tenant(name, store, context, per_tenant=per_tenant)
        if any(field not in context.scope for field in scope):
            return []
        where = {field: arguments[field] for field in filters}
        where |= {field: context.scope[field] for field in scope}
        query = str(arguments["query"])
        if search is not None:
            # ``search`` has a store of its own, so the condition must name the tenant.
            condition = where if tenant is None else {**where, TENANT: tenant}
            hits = search(query, k, condition, context)[:k]
        else:
            with store.for_tenant(tenant) if tenant is not None else nullcontext(store) as opened:
                hits = opened.search(query, k, where=where, lambda_b=lambda_b)
            hits = near_best_hits(hits, min_relevance, near_best)
        return [
            {
                **{
                    field: hit.case.metadata.get(origin) if isinstance(origin, str) else origin(hit)
                    for field, origin in origin_by_field.items()
                },
                "source": f"{store.schema.name}:{hit.case.metadata.get('key', hit.case.id)}",
            }
            for hit in hits
        ]

    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        results=tuple(origin_by_field),
        example=example,
        run=run,
    )


def _tenant(name: str, store: CaseStore, context: CallContext, *, per_tenant: bool) -> str | None:
    """Return the tenant to open the store for; ``None`` to search the store as it was opened."""
    if per_tenant:
        return context.tenant
    tenant = context.scope.get(TENANT)
    if tenant is not None and store.tenant is not None and tenant != store.tenant:
        raise ToolError(
            f"Tool {name!r} searches the cases of another tenant than the request's. Make the tool "
            "with tool_from_store(…, per_tenant=True), or make a toolbox for each tenant."
        )
    return None
