from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from casewright.domains import OpenDomain
from casewright.domains.shopping.data import records
from casewright.graph import RunContext, build_graph
from casewright.planner import Plan, parse_plan
from casewright.planner.fixed import FixedPlanner
from tests.domains.helpers import call

CUSTOMERS = [record["id"] for record in records("customers")]
PAIRS = list(permutations(CUSTOMERS, 2))


def orders_of(customer: str) -> list[dict[str, Any]]:
    return [order for order in records("orders") if order["customer"] == customer]


def items_of(customer: str) -> list[tuple[str, str, str]]:
    """Return the order, product and title of every item that a customer ordered."""
    return [
        (order["id"], item["product_id"], item["title"])
        for order in records("orders")
        if order["customer"] == customer
        for item in order["items"]
    ]


@pytest.mark.parametrize(("customer_id", "owner"), PAIRS)
def test_order_lookup_never_reaches_another_customers_orders(
    shop: OpenDomain, customer_id: str, owner: str
) -> None:
    order_ids = {order["id"] for order in orders_of(customer_id)}
    for order, _, title in items_of(owner):
        for question in (title, f"Where is my {title}?", order, f"order {order} of {owner}"):
            for rows in (
                call(shop, "order_lookup", question, customer_id),
                call(shop, "order_lookup", "another question", customer_id, query=question),
            ):
                assert {row["order_id"] for row in rows} <= order_ids


@pytest.mark.parametrize(("customer_id", "owner"), PAIRS)
def test_shipment_status_never_finds_another_customers_parcel(
    shop: OpenDomain, customer_id: str, owner: str
) -> None:
    orders = orders_of(owner)
    assert len(orders) >= 3
    for order in orders:
        assert call(shop, "shipment_status", customer=customer_id, order_id=order["id"]) == []


def test_request_without_a_customer_finds_no_order(shop: OpenDomain) -> None:
    for order in records("orders"):
        title = order["items"][0]["title"]
        assert call(shop, "order_lookup", title) == []
        assert call(shop, "order_lookup", title, "") == []
        assert call(shop, "shipment_status", order_id=order["id"]) == []
        assert call(shop, "shipment_status", customer="", order_id=order["id"]) == []


@pytest.mark.parametrize("customer", CUSTOMERS)
def test_order_lookup_finds_every_item_by_its_title(shop: OpenDomain, customer: str) -> None:
    for order, product, title in items_of(customer):
        first = call(shop, "order_lookup", "a question", customer, query=title)[0]
        assert (first["order_id"], first["product_id"]) == (order, product)
        assert first["title"] == title


@pytest.mark.parametrize(
    ("customer", "query", "product"),
    [
        ("C001", "phone", "P001"),
        ("C001", "tablet", "P008"),
        ("C001", "coffee machine", "P021"),
        ("C001", "running shoes", "P058"),
        ("C002", "laptop", "P006"),
        ("C002", "headphones", "P011"),
        ("C002", "tent", "P036"),
        ("C003", "hair dryer", "P051"),
        ("C003", "e-reader", "P049"),
        # Words of the title that annotated queries use.
        ("C001", "caldera", "P021"),
        ("C002", "R8", "P026"),
        ("C003", "watch", "P031"),
    ],
)
def test_order_lookup_finds_an_item_by_its_common_name(
    shop: OpenDomain, customer: str, query: str, product: str
) -> None:
    rows = call(shop, "order_lookup", f"Where is my {query}?", customer, query=query)
    assert [row["product_id"] for row in rows][:1] == [product]


@pytest.mark.parametrize("customer", CUSTOMERS)
@pytest.mark.parametrize("question", ["Where is my parcel?", "has it been sent yet", "When??"])
def test_question_that_names_no_item_returns_the_newest_orders(
    shop: OpenDomain, customer: str, question: str
) -> None:
    rows = call(shop, "order_lookup", question, customer)
    dates = {order["id"]: order["date"] for order in orders_of(customer)}
    assert 1 <= len(rows) <= 3
    found_dates = [str(dates[row["order_id"]]) for row in rows]
    assert found_dates == sorted(found_dates, reverse=True)
    assert found_dates[0] == max(map(str, dates.values()))


@pytest.mark.parametrize(
    ("customer", "query"),
    [
        ("C001", "lawn mower"),
        ("C001", "headphones"),
        ("C002", "garden hose"),
        ("C003", "tent"),
        # The customer owns a similar item, but the catalogue has the item itself.
        ("C003", "laptop"),
        ("C006", "rowing machine"),
        ("C002", "stick vacuum"),
        ("C001", "towels"),
    ],
)
def test_item_that_the_customer_does_not_own_is_not_found(
    shop: OpenDomain, customer: str, query: str
) -> None:
    assert call(shop, "order_lookup", f"Where is my {query}?", customer, query=query) == []


def test_plan_run_by_the_graph_finds_no_order_of_another_customer(shop: OpenDomain) -> None:
    plan: Plan = parse_plan(
        's1 = order_lookup(query="Galaxy phone")\ns2 = shipment_status(order_id=s1.order_id)'
    )
    graph = build_graph(shop.toolbox, FixedPlanner(plan))
    phone = next(order for order in orders_of("C001") if order["items"][0]["product_id"] == "P001")
    for customer, statuses in (("C001", ["done", "done"]), ("C002", ["empty", "skipped"])):
        answer = graph.invoke(
            {"question": "Where is my Galaxy phone?"},
            context=RunContext(scope={"customer": customer}),
        )["answer"]
        assert [step["status"] for step in answer["steps"]] == statuses
        assert (phone["parcel"]["tracking"] in answer["text"]) == (customer == "C001")
