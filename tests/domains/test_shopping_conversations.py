"""Tests of the annotated conversations: their form, their plans and the plans' results."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.gold_plans import run_plan
from casewright.domains.shopping.data import FILE_NAMES, records
from casewright.planner import AnnotatedQuery
from casewright.planner.annotated import Conversation

SHOP = find_domain("shopping")
CONVERSATIONS = SHOP.conversations()
TURNS = [(talk, turn) for talk in CONVERSATIONS for turn in talk.turns]


def plain(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def test_conversations_have_two_to_four_turns() -> None:
    lengths = Counter(len(conversation.turns) for conversation in CONVERSATIONS)
    assert set(lengths) == {2, 3, 4}
    assert sum(lengths.values()) >= 190


def test_measuring_conversations_have_every_kind_of_follow_up() -> None:
    measuring = [talk for talk in CONVERSATIONS if talk.is_test_data]
    assert len(measuring) >= 23
    kinds = Counter(kind for talk in CONVERSATIONS for kind, _ in talk.follow_ups)
    measured_kinds = {kind for talk in measuring for kind, _ in talk.follow_ups}
    assert measured_kinds == set(kinds)
    assert len(kinds) >= 8


def test_every_turn_has_the_earlier_turns_as_history() -> None:
    for conversation in CONVERSATIONS:
        for number, turn in enumerate(conversation.turns):
            questions = [earlier["question"] for earlier in turn.record.turns()]
            assert questions == [before.query for before in conversation.turns[:number]]
            assert all(earlier["answer"] for earlier in turn.record.turns())


def test_turn_ids_are_unique_and_every_speaker_is_a_customer() -> None:
    ids = [turn.record.id for _, turn in TURNS]
    assert len(set(ids)) == len(ids)
    customers = {record["id"] for record in records("customers")}
    assert {conversation.scope["customer"] for conversation in CONVERSATIONS} <= customers


def test_pages_and_listed_products_are_in_the_catalogue() -> None:
    products = {record["id"]: record for record in records("products")}
    titles = {record["title"]: record["price"] for record in products.values()}
    listed = re.compile(r"^- (.+?); price ([\d.]+)", re.M)
    for _, turn in TURNS:
        page = turn.record.context.get("product_id")
        assert page is None or page in products
        for earlier in turn.record.turns():
            for title, price in listed.findall(earlier["answer"]):
                assert titles[title] == float(price)


def test_measuring_conversations_are_not_in_the_training_queries() -> None:
    # Files without a name here are in no store.
    assert "conversations" not in FILE_NAMES
    learned = {plain(query.query) for query in SHOP.queries()}
    turns = [turn for talk in CONVERSATIONS if talk.is_test_data for turn in talk.turns[1:]]
    shared = learned & {plain(turn.query) for turn in turns}
    assert not {question for question in shared if len(question.split()) > 5}


@pytest.mark.parametrize(
    "conversation",
    [
        pytest.param(talk, id=talk.id, marks=[pytest.mark.slow] if number % 8 else [])
        for number, talk in enumerate(CONVERSATIONS)
    ],
)
def test_plan_of_every_turn_is_valid_and_finds_something(
    conversation: Conversation, shop: OpenDomain
) -> None:
    for turn in conversation.turns:
        turn.record.request(shop.toolbox).validate(turn.plan)
        statuses = [step.status for step in run_plan(shop.toolbox, turn, conversation.scope)]
        assert set(statuses) == {"done"}, (turn.query, str(turn.plan), statuses)


def test_class_of_every_turn_is_one_of_the_domains_or_an_order() -> None:
    known = {query.label for query in SHOP.queries()} | {"order_lookup"}
    assert {turn.label for _, turn in TURNS} <= known


def test_annotated_literals_contain_the_texts_that_they_must_contain() -> None:
    def text_of(query: AnnotatedQuery, key: str) -> str:
        step, _, parameter = key.partition(".")
        return str(query.plan.steps[int(step[1:]) - 1].argument(parameter)).casefold()

    for _, turn in TURNS:
        for key, words in turn.must.items():
            assert all(word in text_of(turn, key) for word in words), (turn.record.id, key)
