"""The queries that a training set is made of: checked, named, without those for measuring."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from casewright.errors import InputError, PlanError
from casewright.finetune.shots import plain
from casewright.planner import AnnotatedQuery
from casewright.stores.case import check_text
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class QueryPool:
    """Queries that may be learned from.

    Attributes:
        queries: Each with an id of its own, a text.
        excluded: How many were left out, since they are for measuring.
    """

    queries: tuple[AnnotatedQuery, ...]
    excluded: int


def query_pool(
    queries: Iterable[AnnotatedQuery], toolbox: Toolbox, measuring: Iterable[str] = ()
) -> QueryPool:
    """Check annotated queries, and leave out those that are for measuring.

    Args:
        toolbox: What the plans may call, beside the tools that a record brings along.
        measuring: Questions that must not be learned from; one is the same where its words are,
            in any case.

    Raises:
        InputError: Two queries have one id, an id or class is no Unicode, a gold plan is not valid
            for its request, or nothing is left; names the query.
    """
    forbidden = {plain(question) for question in measuring}
    named = [_named(query, number) for number, query in enumerate(queries, 1)]
    kept = [query for query in named if plain(query.query) not in forbidden]
    seen: set[str] = set()
    for query in kept:
        if str(query.record.id) in seen:
            raise InputError(f"Two queries have the id {query.record.id!r}. Give each its own.")
        seen.add(str(query.record.id))
        try:
            check_text(f"{query.record.id} {query.label}")
        except InputError as error:
            raise InputError(f"Id or class of query {query.record.id!r}: {error}") from error
        try:
            query.record.request(toolbox).validate(query.plan)
        except (InputError, PlanError) as error:
            raise InputError(
                f"Query {query.record.id!r} ({query.query!r:.60}) is not right for the toolbox: "
                f"{error}"
            ) from error
    if not kept:
        raise InputError(
            f"There is no query to learn from: {len(named)} were given, and {len(named)} are for "
            "measuring. Give annotated queries."
        )
    return QueryPool(tuple(kept), len(named) - len(kept))


def queries_hash(queries: Sequence[AnnotatedQuery]) -> str:
    """Return the SHA-256 of all that queries say, whatever file they were read from."""
    facts = [
        [
            query.record.model_dump(mode="json"),
            str(query.plan),
            query.label,
            {index: list(words) for index, words in sorted(query.must.items())},
            [list(tools) for tools in query.accept],
        ]
        for query in queries
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _named(query: AnnotatedQuery, number: int) -> AnnotatedQuery:
    given = query.record.id
    name = f"query-{number}" if given is None else str(given)
    return replace(query, record=query.record.model_copy(update={"id": name}))
