"""The shop's tools. The order tools read the customer from the scope, which no plan can write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

from casewright.domains.search_tools import merge_hits, search_arguments
from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best
from casewright.tools import (
    CallContext,
    Search,
    Toolbox,
    ToolExample,
    ToolSpec,
    tool_from_function,
    tool_from_store,
)

_WORD = re.compile(r"\w+")
#: Matches two words, or a digit: such a text may name a product model.
_MODEL_NAME = re.compile(r"\w\W+\w|\d")
Row = dict[str, Any]
#: If an order's title has at least this relevance, the query may mean the order.
MIN_ORDER_RELEVANCE = 0.32
#: Minimum ratio of the relevance of an order's title to that of the catalogue's nearest title. A
#: customer without a laptop who asks about "my laptop" must not get the order of their e-reader.
MIN_SHARE_OF_NEAREST_TITLE = 0.7
#: Minimum relevance of a returned product or fact, and of a returned help article.
MIN_RELEVANCE, MIN_HELP_RELEVANCE = 0.15, 0.23
#: Minimum ratio of the relevance of a hit to that of the best hit.
MIN_SHARE_OF_BEST = 0.6
#: Maximum numbers of products and reviews that one search finds, and of orders in a result. A
#: feedback loop adds at most twice as many products or reviews.
MAX_PRODUCTS, MAX_REVIEWS, MAX_ORDERS = 4, 3, 4
#: Seconds per call on two cores: medians over the steps of 150 annotated queries, rounded up.
LATENCY_BY_TOOL = {"prod_search": 0.02, "prod_qna": 0.02, "review_summary": 0.02}
LATENCY_BY_TOOL |= {"order_lookup": 0.02, "shipment_status": 0.005, "customer_support": 0.02}
#: Sources of the arguments ``query`` (of most tools) and ``product_id``.
QUERY_SOURCES = ("question", "literal")
PRODUCT_SOURCES = ("context", "step")


def shopping_toolbox(
    stores: Mapping[str, CaseStore], loops: Mapping[str, Search] | None = None
) -> Toolbox:
    """Return the shop's toolbox; ``loops`` has relevance-feedback searches by store name."""
    loop_of = (loops or {}).get
    tools = [
        _prod_search(stores["products"], loop_of("products")),
        _prod_qna(stores["facts"], loop_of("facts")),
        _review_summary(stores["reviews"], loop_of("reviews")),
        _order_lookup(stores["orders"], stores["products"], loop_of("orders")),
        _shipment_status(stores["orders"]),
        _customer_support(stores["help"], loop_of("help")),
    ]
    # With loops, the tools have no latency, since the time of a loop's judge is unknown.
    if loops:
        return Toolbox(tools)
    return Toolbox(replace(tool, latency=LATENCY_BY_TOOL[tool.name]) for tool in tools)


def _prod_search(products: CaseStore, loop: Search | None) -> ToolSpec:
    fields = ("product_id", "title", "price")

    def prod_search(query: str, call: CallContext) -> list[Row]:
        """Finds products in the catalogue: searches, recommendations, gift ideas."""
        hits = near_best(products.search(query, 20), MIN_RELEVANCE, MIN_SHARE_OF_BEST)
        # The next step uses the first product. A product that the query names must come first:
        # "Vista 55" is similar to the title "Vista 32", but means another product. A single word
        # names no product: "laptop" is also in the title of a laptop stand.
        if _MODEL_NAME.search(query):
            hits.sort(key=lambda hit: not _matches(hit, query))
        loop_hits = [] if loop is None else loop(query, 2 * MAX_PRODUCTS, {}, call)
        hits = merge_hits(hits[:MAX_PRODUCTS], loop_hits)
        return [_row(hit, "products", fields) for hit in hits]

    return tool_from_function(
        prod_search,
        finds="product",
        results=fields,
        sources={"query": ("span", "literal", "question", "step")},
        example=ToolExample(
            "I'm after a lamp for my desk", 's1 = prod_search(query="lamp for my desk")'
        ),
    )


def _row(hit: Hit, store: str, fields: tuple[str, ...]) -> Row:
    """Return some fields of a hit, and ``source``: the store and the value of the first field."""
    row = {field: hit.case.metadata[field] for field in fields}
    return {**row, "source": f"{store}:{row[fields[0]]}"}


def _prod_qna(facts: CaseStore, loop: Search | None) -> ToolSpec:
    return tool_from_store(
        facts,
        name="prod_qna",
        description="A fact about one product: its page, specifications, questions and answers.",
        filters=("product_id",),
        sources={"product_id": PRODUCT_SOURCES, "query": QUERY_SOURCES},
        **search_arguments(facts, 3, MIN_RELEVANCE, MIN_SHARE_OF_BEST, loop),
        example=ToolExample(
            "What's the voltage of my drill?",
            's1 = order_lookup(query="drill")\n'
            "s2 = prod_qna(product_id=s1.product_id, query=question)",
        ),
    )


def _review_summary(reviews: CaseStore, loop: Search | None) -> ToolSpec:
    def review_summary(product_id: str, query: str, call: CallContext) -> list[Row]:
        """What buyers say of one product: its stars, and the reviews nearest to the question."""
        product_filter = {"product_id": product_id}
        hits = reviews.search(query, 50, where=product_filter)
        if not hits:
            return []
        stars = [int(hit.case.metadata["stars"]) for hit in hits]
        summary = f"{len(stars)} reviews, {mean(stars):.1f} of 5 stars on average."
        overview = {"evidence": summary, "source": f"reviews:{product_id}"}
        loop_hits = [] if loop is None else loop(query, 2 * MAX_REVIEWS, product_filter, call)
        rows = [
            {"evidence": str(case.solution), "source": f"reviews:{case.metadata['key']}"}
            for case in (hit.case for hit in merge_hits(loop_hits, hits[:MAX_REVIEWS]))
        ]
        return [overview, *rows]

    return tool_from_function(
        review_summary,
        sources={"product_id": PRODUCT_SOURCES, "query": QUERY_SOURCES},
        example=ToolExample(
            "do people like it?",
            "s1 = review_summary(product_id=context.product_id, query=question)",
        ),
    )


def _order_lookup(orders: CaseStore, products: CaseStore, loop: Search | None) -> ToolSpec:
    fields = ("order_id", "product_id", "title")

    def order_lookup(query: str, call: CallContext) -> list[Row]:
        """This customer's own past orders: finds the thing that they own or wait for."""
        customer = call.scope.get("customer")
        if customer is None:
            return []
        customer_filter = {"customer": customer}
        loop_hits = [] if loop is None else loop(query, 2 * MAX_ORDERS, customer_filter, call)
        single_hits = orders.search(query, 10, where=customer_filter, lambda_b=0.95)
        hits = merge_hits(single_hits, loop_hits)
        likely = [h for h in hits if h.relevance >= MIN_ORDER_RELEVANCE or _matches(h, query)]
        if not all(_matches(hit, query) for hit in likely):
            nearest = products.search(query, 1, weights={"title": 1.0})[0]
            lowest = MIN_SHARE_OF_NEAREST_TITLE * nearest.relevance
            likely = [hit for hit in likely if hit.relevance >= lowest or _matches(hit, query)]
        # "Where is my parcel?" names no item, so the plan passes the whole question. The newest
        # orders are then meant. They have the highest quality, and lambda_b=0 sorts by quality.
        if not likely and query == call.question:
            likely = orders.search(query, 3, where=customer_filter, lambda_b=0.0)
        return [_row(hit, "orders", fields) for hit in likely[:MAX_ORDERS]]

    return tool_from_function(
        order_lookup,
        results=fields,
        sources={"query": ("span", "literal", "question")},
        example=ToolExample("when did I buy the kettle", 's1 = order_lookup(query="kettle")'),
    )


def _matches(hit: Hit, query: str) -> bool:
    """Return ``True`` if a hit's title has every word of the query: "R9" does not match "R8"."""
    title = set(_WORD.findall(str(hit.case.metadata["title"]).casefold()))
    words = set(_WORD.findall(query.casefold()))
    return bool(words) and words <= title


def _shipment_status(orders: CaseStore) -> ToolSpec:
    def shipment_status(order_id: str, call: CallContext) -> list[Row]:
        """Where the parcel of an order is, and when it arrives."""
        cases = orders.all(where={"order_id": order_id, "customer": call.scope.get("customer", "")})
        if not cases:
            return []
        parcel = cases[0].solution["parcel"]
        last_event = parcel["events"][-1]
        status = (
            f"{parcel['note']} ({parcel['carrier']} {parcel['tracking']}; last seen "
            f"{last_event['at'].replace('T', ' ')}, {last_event['place']}: {last_event['what']})"
        )
        return [{"evidence": status, "source": f"shipments:{order_id}"}]

    return tool_from_function(
        shipment_status,
        sources={"order_id": ("step",)},
        example=ToolExample(
            "has the lamp been sent yet",
            's1 = order_lookup(query="lamp")\ns2 = shipment_status(order_id=s1.order_id)',
        ),
    )


def _customer_support(articles: CaseStore, loop: Search | None) -> ToolSpec:
    return tool_from_store(
        articles,
        name="customer_support",
        description="The shop's policies and services: returns, refunds, payment, account, "
        "delivery in general, warranty, talking to a person.",
        sources={"query": QUERY_SOURCES},
        **search_arguments(articles, 2, MIN_HELP_RELEVANCE, MIN_SHARE_OF_BEST, loop),
        example=ToolExample("can I pay when it arrives", "s1 = customer_support(query=question)"),
    )
