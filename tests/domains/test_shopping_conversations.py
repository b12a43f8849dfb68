"""The annotated conversations: their form, their plans, and what these find in the stores."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.gold_plans import run_plan
from casewright.domains.shopping.data import NAMES, records
from casewright.planner import AnnotatedQuery
from casewright.planner.annotated import Conversation

SHOP = find_domain("shopping")
CONVERSATIONS = SHOP.conversations()
TURNS = [(one, turn) for one in CONVERSATIONS for turn in one.turns]


def plain(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def test_conversations_have_two_to_four_turns() -> None:
    lengths = Counter(len(one.turns) for one in CONVERSATIONS)
    assert set(lengths) == {2, 3, 4}
    assert sum(lengths.values()) >= 190


def test_measuring_conversations_have_every_kind_of_follow_up() -> None:
    kept = [one for one in CONVERSATIONS if one.measuring]
    assert len(kept) >= 23
    kinds = Counter(kind for one in CONVERSATIONS for kind, _ in one.follow_ups)
    own = {kind for one in kept for kind, _ in one.follow_ups}
    assert own == set(kinds)
    assert len(kinds) >= 8


def test_every_turn_has_those_before_it_as_history() -> None:
    for one in CONVERSATIONS:
        for number, turn in enumerate(one.turns):
            asked = [said["question"] for said in turn.record.turns()]
            assert asked == [before.query for before in one.turns[:number]]
            assert all(said["answer"] for said in turn.record.turns())


def test_ids_are_unique_and_whoever_speaks_is_a_customer() -> None:
    ids = [turn.record.id for _, turn in TURNS]
    assert len(set(ids)) == len(ids)
    known = {record["id"] for record in records("customers")}
    assert {one.scope["customer"] for one in CONVERSATIONS} <= known


def test_pages_and_listed_products_are_in_the_catalogue() -> None:
    products = {record["id"]: record for record in records("products")}
    titles = {record["title"]: record["price"] for record in products.values()}
    listed = re.compile(r"^- (.+?); price ([\d.]+)", re.M)
    for _, turn in TURNS:
        page = turn.record.context.get("product_id")
        assert page is None or page in products
        for said in turn.record.turns():
            for title, price in listed.findall(said["answer"]):
                assert titles[title] == float(price)


def test_measuring_conversations_are_not_in_the_training_queries() -> None:
    # What is not among these names is no part of the stores, plan cases included.
    assert "conversations" not in NAMES
    learned = {plain(query.query) for query in SHOP.queries()}
    kept = {plain(turn.query) for one in CONVERSATIONS if one.measuring for turn in one.turns[1:]}
    short = {question for question in kept & learned if len(question.split()) > 5}
    assert not short


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one.id, marks=[pytest.mark.slow] if number % 8 else [])
        for number, one in enumerate(CONVERSATIONS)
    ],
)
def test_plan_of_every_turn_is_valid_and_finds_something(
    one: Conversation, shop: OpenDomain
) -> None:
    for turn in one.turns:
        turn.record.request(shop.toolbox).validate(turn.plan)
        ends = [step.status for step in run_plan(shop.toolbox, turn, one.scope)]
        assert set(ends) == {"done"}, (turn.query, str(turn.plan), ends)


def test_class_of_every_turn_is_one_of_the_domains_or_an_order() -> None:
    known = {query.label for query in SHOP.queries()} | {"order_lookup"}
    assert {turn.label for _, turn in TURNS} <= known


def test_texts_that_literals_must_contain_are_in_the_annotated_ones() -> None:
    def text_of(query: AnnotatedQuery, place: str) -> str:
        step, _, parameter = place.partition(".")
        return str(query.plan.steps[int(step[1:]) - 1].argument(parameter)).casefold()

    for _, turn in TURNS:
        for place, words in turn.must.items():
            assert all(word in text_of(turn, place) for word in words), (turn.record.id, place)
