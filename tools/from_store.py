"""A case store becomes a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from casewright.errors import ToolError
from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best as worth_showing
from casewright.stores.tenant import FIELD as TENANT
from casewright.tools.parameter import Parameter, sources_of
from casewright.tools.spec import CallContext, ToolExample, ToolSpec

#: How a result field is read from a hit; a text names a metadata field.
Read = str | Callable[[Hit], Any]


class Search(Protocol):
    """Searches in place of ``CaseStore.search``, with relevance feedback for example."""

    def __call__(
        self, query: str, k: int, where: Mapping[str, Any], context: CallContext
    ) -> Sequence[Hit]:
        """Return at most k hits, best first."""


def tool_from_store(
    store: CaseStore,
    *,
    name: str,
    description: str,
    results: Mapping[str, Read] | None = None,
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
    """Make a tool that searches a case store by ``query``.

    Args:
        store: Searched by its schema's own facet weights.
        name: The tool's name.
        description: For the planner.
        results: Result field to how it is read from a hit; by default ``evidence``, the case as
            its schema's support text.
        filters: Metadata fields that are parameters of the tool: only cases that have the given
            value are searched. They come before ``query``.
        scope: Metadata fields bound to the request's scope: a search sees only cases that have the
            asker's value, and no plan can write it. A request whose scope lacks one finds nothing.
        per_tenant: Each request searches its own tenant's cases, ``store.for_tenant``, whichever
            tenant the store was opened for; one that names no tenant fails. Otherwise the store is
            searched as it was opened, and one that was opened for a tenant fails for another's.
        sources: Parameter name to where its argument may come from.
        k: Most results.
        min_relevance: A hit below this weighted cosine is no result.
        near_best: A hit below this share of the best hit's weighted cosine is no result.
        lambda_b: Share of the relevance in the ranking; the rest is the cases' quality.
        search: How the store is searched, in place of a single search; ``min_relevance`` and
            ``near_best`` are not applied to what it finds, which it has judged itself.
        example: A question that it helps to answer, with the plan.

    Raises:
        ToolError: ``sources`` names no parameter of the tool, or a filter would choose the tenant.
    """
    reads: Mapping[str, Read] = results or {"evidence": lambda hit: store.schema.support(hit.case)}
    declared = {name_: sources_of(given, name_) for name_, given in (sources or {}).items()}
    names = [*filters, "query"]
    if unknown := sorted(set(declared) - set(names)):
        raise ToolError(f"Tool {name!r} has no parameter {unknown}; its parameters are {names}.")
    if per_tenant and TENANT in filters:
        raise ToolError(
            f"Tool {name!r} is per tenant, and has a filter by {TENANT!r}, which a plan could "
            "write. Leave the filter out."
        )
    parameters = tuple(
        Parameter(
            name=parameter,
            kind="string" if parameter == "query" else "any",
            sources=declared.get(parameter, frozenset()),
        )
        for parameter in names
    )

    def run(given: Mapping[str, Any], context: CallContext) -> list[dict[str, Any]]:
        tenant = _tenant(name, store, context, per_tenant=per_tenant)
        if any(field not in context.scope for field in scope):
            return []
        where = {field: given[field] for field in filters}
        where |= {field: context.scope[field] for field in scope}
        query = str(given["query"])
        if search is not None:
            # It has a store of its own, so the condition says whose cases it may find.
            own = {} if tenant is None else {TENANT: tenant}
            hits = search(query, k, {**where, **own}, context)[:k]
        elif tenant is not None:
            with store.for_tenant(tenant) as tenants:
                hits = tenants.search(query, k, where=where, lambda_b=lambda_b)
        else:
            hits = store.search(query, k, where=where, lambda_b=lambda_b)
        if search is None:
            hits = worth_showing(hits, min_relevance, near_best)
        return [
            {
                **{field: _read(hit, read) for field, read in reads.items()},
                "source": f"{store.schema.name}:{hit.case.metadata.get('key', hit.case.id)}",
            }
            for hit in hits
        ]

    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        results=tuple(reads),
        example=example,
        run=run,
    )


def _tenant(name: str, store: CaseStore, context: CallContext, *, per_tenant: bool) -> str | None:
    """Return the tenant that the store is to be opened for, if it is not to be taken as it is.

    Raises:
        ToolError: It is another tenant's, or the request names none.
    """
    asked = context.scope.get(TENANT)
    if per_tenant and not asked:
        raise ToolError(
            f"Tool {name!r} searches a tenant's cases, and the request names no tenant. Give one "
            "in the run's context: RunContext(tenant=…), or by --tenant on the command line."
        )
    if per_tenant:
        return asked
    if asked is not None and store.tenant is not None and asked != store.tenant:
        raise ToolError(
            f"Tool {name!r} searches the cases of another tenant than the request's. Make it with "
            "tool_from_store(…, per_tenant=True), or a toolbox for each tenant."
        )
    return None


def _read(hit: Hit, read: Read) -> Any:
    return hit.case.metadata.get(read) if isinstance(read, str) else read(hit)
