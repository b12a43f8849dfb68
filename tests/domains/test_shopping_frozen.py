"""The queries for measuring only are apart from those that planners learn from."""

from __future__ import annotations

import re
from collections import Counter

from casewright.domains import OpenDomain, find_domain
from casewright.domains.shopping.data import NAMES

SHOP = find_domain("shopping")


def plain(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def test_frozen_queries_are_a_hundred_with_ten_or_more_per_class() -> None:
    counted = Counter(query.label for query in SHOP.measuring_queries())
    assert sum(counted.values()) == 100
    assert min(counted.values()) >= 10
    assert len(counted) == 7


def test_frozen_queries_are_not_in_the_training_queries() -> None:
    learned = {plain(query.query) for query in SHOP.queries()}
    assert learned.isdisjoint(plain(query.query) for query in SHOP.measuring_queries())
    # What is not among these names is no part of the stores, plan cases included.
    assert "frozen" not in NAMES


def test_every_frozen_query_has_a_valid_plan(shop: OpenDomain) -> None:
    for query in SHOP.measuring_queries():
        query.record.request(shop.toolbox).validate(query.plan)
