"""Tests of the measuring queries, none of which is among the training queries."""

from __future__ import annotations

import re
from collections import Counter

from casewright.domains import OpenDomain, find_domain
from casewright.domains.shopping.data import FILE_NAMES

SHOP = find_domain("shopping")


def plain(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def test_frozen_queries_are_a_hundred_with_ten_or_more_per_class() -> None:
    counts = Counter(query.label for query in SHOP.measuring_queries())
    assert sum(counts.values()) == 100
    assert min(counts.values()) >= 10
    assert len(counts) == 7


def test_frozen_queries_are_not_in_the_training_queries() -> None:
    learned = {plain(query.query) for query in SHOP.queries()}
    assert learned.isdisjoint(plain(query.query) for query in SHOP.measuring_queries())
    # Files without a name here are in no store.
    assert "frozen" not in FILE_NAMES


def test_every_frozen_query_has_a_valid_plan(shop: OpenDomain) -> None:
    for query in SHOP.measuring_queries():
        query.record.request(shop.toolbox).validate(query.plan)
