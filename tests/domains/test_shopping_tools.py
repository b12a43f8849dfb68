from __future__ import annotations

import pytest

from casewright.domains import OpenDomain
from casewright.domains.shopping.data import records
from casewright.stores import default_encoder
from tests.domains.helpers import call


@pytest.mark.parametrize(
    ("query", "product"),
    [
        ("Sonara Galaxy 12", "P001"),
        ("robot vacuum", "P026"),
        ("espresso machine", "P021"),
        ("noise-cancelling headphones", "P011"),
        ("picture book", "P050"),
        ("running shoes", "P058"),
        ("tent for two", "P036"),
    ],
)
def test_prod_search_finds_the_named_product_first(
    shop: OpenDomain, query: str, product: str
) -> None:
    rows = call(shop, "prod_search", query)
    assert rows[0]["product_id"] == product, [row["title"] for row in rows]
    assert len(rows) <= 4
    catalogue = {record["id"]: record for record in records("products")}
    for row in rows:
        assert row["title"] == catalogue[row["product_id"]]["title"]
        assert row["price"] == catalogue[row["product_id"]]["price"]


@pytest.mark.parametrize(
    ("query", "title"),
    [("Vista 55", "Vista 55"), ("dustin v3", "Dustin V3"), ("arbor book 17", "Arbor Book 17")],
)
def test_prod_search_finds_the_named_model_before_related_models(
    shop: OpenDomain, query: str, title: str
) -> None:
    assert call(shop, "prod_search", query)[0]["title"].startswith(title)


@pytest.mark.parametrize(
    ("product", "question", "word"),
    [
        ("P001", "How much memory does it have?", "8 GB"),
        ("P001", "Is it waterproof?", "IP68"),
        ("P001", "What does it cost?", "749.00 EUR"),
        ("P021", "What does the machine cost?", "549.00 EUR"),
    ],
)
def test_prod_qna_returns_facts_of_the_given_product_only(
    shop: OpenDomain, product: str, question: str, word: str
) -> None:
    rows = call(shop, "prod_qna", question, product_id=product)
    assert any(word in row["evidence"] for row in rows), rows
    assert 1 <= len(rows) <= 3
    assert all(row["source"].startswith(f"facts:{product}.") for row in rows)


def test_review_summary_counts_and_averages_all_reviews_of_the_product(shop: OpenDomain) -> None:
    for product in ("P001", "P026", "P060"):
        stars = [r["stars"] for r in records("reviews") if r["product_id"] == product]
        overview, *quoted = call(shop, "review_summary", "Is it any good?", product_id=product)
        average = sum(stars) / len(stars)
        text = f"{len(stars)} reviews, {average:.1f} of 5 stars on average."
        assert overview == {"evidence": text, "source": f"reviews:{product}"}
        assert 1 <= len(quoted) <= 3
        review_ids = {r["id"] for r in records("reviews") if r["product_id"] == product}
        assert {row["source"].removeprefix("reviews:") for row in quoted} <= review_ids


def test_review_summary_quotes_the_review_that_the_question_is_about(shop: OpenDomain) -> None:
    rows = call(shop, "review_summary", "Did it survive falling in water?", product_id="P001")
    assert any("canoe" in row["evidence"] for row in rows)


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How long do refunds take?", "refund time"),
        ("Can I send an order back?", "returning an item"),
        ("I forgot my password", "account password"),
        ("Which ways to pay do you accept?", "payment methods"),
        ("Can I talk to a human being?", "talk to a person"),
        ("Do you deliver to other countries?", "delivery abroad"),
    ],
)
def test_customer_support_finds_the_article(shop: OpenDomain, question: str, topic: str) -> None:
    rows = call(shop, "customer_support", question)
    expected = next(article for article in records("help") if article["topic"] == topic)
    assert expected["title"] in rows[0]["evidence"], rows
    assert len(rows) <= 2


@pytest.mark.parametrize("question", ["asdf qwer", "hjkl", "lorem ipsum dolor", "2+2"])
def test_customer_support_finds_nothing_for_text_that_is_no_question(
    shop: OpenDomain, question: str
) -> None:
    assert call(shop, "customer_support", question) == []


def test_every_question_of_an_article_finds_an_article_and_most_find_their_own(
    shop: OpenDomain,
) -> None:
    default_encoder().embed([text for article in records("help") for text in article["asked"]])
    finds_article = []
    for article in records("help"):
        for text in article["asked"]:
            rows = call(shop, "customer_support", text)
            assert rows, text
            finds_article.append(any(row["source"] == f"help:{article['id']}" for row in rows))
    assert sum(finds_article) / len(finds_article) >= 0.9


def test_product_that_is_not_in_the_shop_has_no_facts_and_no_reviews(shop: OpenDomain) -> None:
    assert call(shop, "prod_qna", "memory", product_id="P999") == []
    assert call(shop, "review_summary", "good", product_id="P999") == []


def test_shipment_status_returns_the_place_of_the_parcel(shop: OpenDomain) -> None:
    for order in records("orders"):
        rows = call(shop, "shipment_status", customer=order["customer"], order_id=order["id"])
        assert len(rows) == 1
        assert order["parcel"]["tracking"] in rows[0]["evidence"]
        assert order["parcel"]["events"][-1]["place"] in rows[0]["evidence"]


def test_every_tool_returns_the_source_of_each_result(shop: OpenDomain) -> None:
    order_id = next(order["id"] for order in records("orders") if order["customer"] == "C001")
    rows = [
        *call(shop, "prod_search", "lamp"),
        *call(shop, "prod_qna", "weight", product_id="P001"),
        *call(shop, "review_summary", "weight", product_id="P001"),
        *call(shop, "order_lookup", "phone", "C001"),
        *call(shop, "shipment_status", customer="C001", order_id=order_id),
        *call(shop, "customer_support", "invoice"),
    ]
    assert len(rows) >= 10
    assert all(":" in row["source"] for row in rows)
