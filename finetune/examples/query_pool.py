"""Checks the queries of a training set, omits test questions, and draws validation queries."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from casewright.errors import InputError, PlanError
from casewright.finetune.neighbours import question_key
from casewright.planner import AnnotatedQuery
from casewright.stores.case import check_text
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class QueryPool:
    """Queries for a training set. Their ids are unique; ``excluded_count`` queries were omitted."""

    queries: tuple[AnnotatedQuery, ...]
    excluded_count: int


def query_pool(
    queries: Iterable[AnnotatedQuery], toolbox: Toolbox, test_questions: Iterable[str] = ()
) -> QueryPool:
    """Return the checked annotated queries without the test questions.

    ``InputError`` names the query if two queries share an id, an id or class is not Unicode, or a
    gold plan is not valid for its request. ``InputError`` is also raised if no query is left.
    """
    test_keys = {question_key(question) for question in test_questions}
    with_ids = []
    for number, query in enumerate(queries, 1):
        id_ = f"query-{number}" if query.record.id is None else str(query.record.id)
        with_ids.append(replace(query, record=query.record.model_copy(update={"id": id_})))
    usable = [query for query in with_ids if question_key(query.query) not in test_keys]
    ids: set[str] = set()
    for query in usable:
        id_ = str(query.record.id)
        if id_ in ids:
            raise InputError(f"Two queries have the id {id_!r}. Give each its own.")
        ids.add(id_)
        try:
            check_text(f"{id_} {query.label}")
        except InputError as error:
            raise InputError(f"Id or class of query {id_!r}: {error}") from error
        try:
            query.record.request(toolbox).validate(query.plan)
        except (InputError, PlanError) as error:
            raise InputError(
                f"Query {id_!r} ({query.query!r:.60}) is not right for the toolbox: {error}"
            ) from error
    if not usable:
        raise InputError(
            f"There is no query to learn from: {len(with_ids)} were given, and {len(with_ids)} "
            "are test questions. Give annotated queries."
        )
    return QueryPool(tuple(usable), len(with_ids) - len(usable))


def queries_hash(queries: Sequence[AnnotatedQuery]) -> str:
    """Return the SHA-256 of the queries' contents, which is independent of a file's format."""
    contents = [
        [
            query.record.model_dump(mode="json"),
            str(query.plan),
            query.label,
            {argument: list(words) for argument, words in sorted(query.must.items())},
            [list(tools) for tools in query.accept],
        ]
        for query in queries
    ]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def validation_items(groups: Sequence[Hashable], share: float, *, seed: int = 0) -> frozenset[int]:
    """Return the indices of the items for validation: random whole groups.

    ``groups`` holds the group of each item. The drawn groups have at most ``share`` of all items.
    If every group has more, the smallest is drawn. ``InputError`` if all items are in one group.
    """
    if share == 0:
        return frozenset()
    indices_of: dict[Hashable, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        indices_of[group].append(index)
    if len(indices_of) < 2:
        raise InputError(
            f"The {len(groups)} queries cannot be split: all are alike. Add other queries, or set "
            "validation = 0."
        )
    shuffled_groups = list(indices_of.values())
    random.Random(f"{seed}:validation").shuffle(shuffled_groups)
    drawn: list[int] = []
    # The first shuffled group stays for training.
    for indices in shuffled_groups[1:]:
        if len(drawn) + len(indices) <= round(share * len(groups)):
            drawn += indices
    smallest: list[int] = min(shuffled_groups, key=len)
    return frozenset(drawn or smallest)


def in_validation(key: str, share: float, *, seed: int = 0) -> bool:
    """Return True if a key is for validation; its hash decides, for about ``share`` of all keys."""
    digest = hashlib.blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
