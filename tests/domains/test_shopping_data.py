from __future__ import annotations

import re
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.shopping import cases
from casewright.domains.shopping.data import FILE_NAMES, data_file, records
from casewright.planner import PlanRequest
from casewright.stores import CachedEncoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries

CLASSES = {
    "prod_search",
    "prod_qna",
    "review_summary",
    "shipment_status",
    "customer_support",
    "no_evidence",
}


def by_id(name: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in records(name)}


def test_shop_is_large_enough_to_be_a_worked_example() -> None:
    minimums = {
        "products": 240,
        "reviews": 1200,
        "help": 60,
        "orders": 40,
        "customers": 6,
        "queries": 200,
    }
    assert set(minimums) == set(FILE_NAMES)
    assert all(len(records(name)) >= number for name, number in minimums.items())
    assert len({product["category"] for product in records("products")}) >= 12
    assert len({order["parcel"]["state"] for order in records("orders")}) >= 10


@pytest.mark.parametrize("name", FILE_NAMES)
def test_ids_are_unique(name: str) -> None:
    assert len(by_id(name)) == len(records(name))


@pytest.mark.parametrize("name", FILE_NAMES)
def test_files_are_plain_json_lines(name: str) -> None:
    text = data_file(name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    assert "\x00" not in text
    assert text.count("\n") == len(records(name))


def test_every_product_has_price_description_specifications_and_answered_questions() -> None:
    for product in records("products"):
        assert product["price"] > 0
        assert product["title"].strip()
        assert len(product["description"]) > 40
        assert len(product["specs"]) >= 3
        assert len(product["qna"]) >= 2
        assert all(qa["question"].strip() and qa["answer"].strip() for qa in product["qna"])


def test_every_article_has_questions_that_are_neither_titles_nor_annotated_questions() -> None:
    def normalise(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.casefold()))

    articles = records("help")
    questions = [normalise(question) for article in articles for question in article["asked"]]
    assert all(4 <= len(article["asked"]) <= 6 for article in articles)
    assert len(set(questions)) == len(questions)
    assert not set(questions) & {normalise(article["title"]) for article in articles}
    # Benches measure with annotated questions, so no article may contain one.
    assert not set(questions) & {normalise(query.query) for query in shop_queries()}


def test_price_that_a_products_texts_name_is_its_price() -> None:
    amount = re.compile(
        r"(?:€|EUR) ?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?) ?(?:€|EUR\b|euros?\b)"
    )
    for product in records("products"):
        texts = [product["title"], product["description"], *product["specs"].values()]
        texts += [text for qa in product["qna"] for text in (qa["question"], qa["answer"])]
        prices = [before or after for before, after in amount.findall("\n".join(texts))]
        assert all(float(n.replace(",", "")) == product["price"] for n in prices), product["id"]


def test_every_review_is_of_a_product_of_the_catalogue_and_has_stars() -> None:
    products = by_id("products")
    for review in records("reviews"):
        assert review["product_id"] in products
        assert review["stars"] in (1, 2, 3, 4, 5)
        assert review["text"].strip()
    reviewed = Counter(review["product_id"] for review in records("reviews"))
    assert set(reviewed) == set(products)


def test_every_order_is_of_a_customer_and_its_items_are_as_in_the_catalogue() -> None:
    products, customers = by_id("products"), by_id("customers")
    for order in records("orders"):
        assert order["customer"] in customers
        assert order["items"]
        for item in order["items"]:
            product = products[item["product_id"]]
            assert (item["title"], item["price"]) == (product["title"], product["price"])
        total = sum(item["price"] * item["quantity"] for item in order["items"])
        # Delivery beyond the European Union is never free, as the help articles say.
        abroad = any("Left the country" in event["what"] for event in order["parcel"]["events"])
        assert order["total"] == pytest.approx(total + 19.9 * abroad)
        assert abroad or total >= 50
    assert {order["customer"] for order in records("orders")} == set(customers)


def test_parcel_events_are_in_order_of_time_and_some_parcels_are_under_way() -> None:
    states = Counter(order["parcel"]["state"] for order in records("orders"))
    under_way = ("in transit", "out for delivery", "being packed", "delayed")
    assert all(states[state] >= 1 for state in under_way)
    arrived = ("delivered", "delivered to a neighbour", "refunded")
    for order in records("orders"):
        parcel = order["parcel"]
        times = [event["at"] for event in parcel["events"]]
        assert times == sorted(times)
        assert times[0] >= order["date"]
        assert date.fromisoformat(parcel["expected"]) >= date.fromisoformat(order["date"])
        assert (parcel["state"] in arrived) == (parcel["delivered"] is not None)


def test_queries_cover_every_class_and_several_steps() -> None:
    counts = Counter(query.label for query in shop_queries())
    assert set(counts) == {*CLASSES, "multi_step", "extra_tool"}
    assert len(shop_queries()) >= 900
    assert min(counts.values()) >= 100
    assert counts["multi_step"] >= 200


def test_some_queries_have_tools_added_and_some_have_tools_removed() -> None:
    annotations = [query.record for query in shop_queries()]
    assert sum(bool(record.tools_extra) for record in annotations) >= 100
    assert sum(bool(record.tools_removed) for record in annotations) >= 50
    assert all(record["source"] for record in records("queries"))


def test_no_question_is_annotated_twice() -> None:
    assert len({query.query for query in shop_queries()}) == len(shop_queries())


def test_every_gold_plan_is_valid_in_the_shops_toolbox(shop: OpenDomain) -> None:
    products = by_id("products")
    for query in shop_queries():
        request: PlanRequest = query.record.request(shop.toolbox)
        request.validate(query.plan)
        page = query.record.context.get("product_id")
        assert page is None or page in products
        for name, words in query.must.items():
            step, parameter = name.split(".")
            argument = dict(query.plan.steps[int(step[1:]) - 1].arguments)[parameter]
            assert all(word in str(argument).lower() for word in words), query.record.id


def test_cases_have_unique_keys_and_none_is_lost(shop: OpenDomain) -> None:
    cases_by_store = {
        "products": cases.product_cases(),
        "facts": cases.fact_cases(),
        "reviews": cases.review_cases(),
        "orders": cases.order_cases(),
        "help": cases.help_cases(),
    }
    for name, members in cases_by_store.items():
        assert len({case.metadata["key"] for case in members}) == len(members)
        assert shop.stores[name].count() == len(members), name


def test_building_the_shop_encodes_nothing_and_its_vectors_are_those_of_the_encoder(
    tmp_path: Path,
) -> None:
    # python -m casewright.domains.shopping.vectors writes the vectors anew.
    minilm = MiniLMEncoder()
    recorder = HashingEncoder(minilm.dimension, minilm.name)
    encoder = CachedEncoder(recorder)
    opened = find_domain("shopping").open(tmp_path, encoder, False)
    opened.close()
    assert recorder.calls == []
    texts = [article["title"] for article in records("help")[:8]]
    assert np.allclose(encoder.embed(texts), minilm.embed(texts), atol=1e-5)
    assert recorder.calls == []
