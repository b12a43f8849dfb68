"""The shop's data as cases: products, facts about them, reviews, orders, help articles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from casewright.domains.build import MakeCases
from casewright.domains.shopping.data import records
from casewright.stores import Case, CaseSchema, Encoder, Facet, text_facet
from casewright.stores.facet import Components, component_text


def schemas(encoder: Encoder) -> dict[str, tuple[CaseSchema, MakeCases]]:
    """Return each store's schema and the function that returns its cases, by the store's name."""
    facet = partial(text_facet, encoder=encoder)
    product_facets = facet("title", weight=0.6), facet("about", weight=0.4)
    questions_facet = _usual_questions_facet(encoder, weight=0.6)
    help_facets = questions_facet, facet("title", weight=0.1), facet("text", weight=0.3)
    # The quality of an order is its negative age in years, so that new orders come first.
    orders = CaseSchema("orders", (facet("title"),), quality_range=(-1.0, 0.0))
    return {
        "products": (CaseSchema("products", product_facets), product_cases),
        "facts": (CaseSchema("facts", (facet("fact"),)), fact_cases),
        "reviews": (CaseSchema("reviews", (facet("review"),)), review_cases),
        "orders": (orders, order_cases),
        "help": (CaseSchema("help", help_facets), help_cases),
    }


def _usual_questions_facet(encoder: Encoder, weight: float) -> Facet:
    """Return a facet that compares a query with the mean vector of an article's usual questions.

    ``asked`` holds these questions. The nearest one may share words with the query by chance; the
    mean does not.
    """

    def embed_case(problems: Sequence[Components]) -> NDArray[np.float32]:
        questions = [problem["asked"] for problem in problems]
        vectors = encoder.embed(list(chain.from_iterable(questions)))
        ends = np.cumsum(list(map(len, questions)))[:-1]
        return np.array([part.mean(axis=0) for part in np.split(vectors, ends)])

    def describe(problem: Components) -> str:
        return component_text(problem["asked"])

    def embed_query(problems: Sequence[Components]) -> NDArray[np.float32]:
        return encoder.embed([describe(problem) for problem in problems])

    functions = (embed_case, embed_query, describe)
    model = f"{encoder.name}/mean"
    return Facet("asked", ("asked",), encoder.dimension, *functions, model=model, weight=weight)


def product_cases() -> list[Case]:
    """Return a case for each product."""
    cases = []
    for product in records("products"):
        id_, title, price = product["id"], product["title"], product["price"]
        problem = {"title": title, "about": f"{product['category']}. {product['description']}"}
        solution = f"{title}, {price:.2f} EUR. {product['description']}"
        metadata = {"key": id_, "product_id": id_, "title": title, "price": price}
        cases.append(Case(problem, solution, metadata=metadata))
    return cases


def fact_cases() -> list[Case]:
    """Return a case for each description, price, specification and answered question."""
    cases = []
    for product in records("products"):
        facts = [
            # The text to compare, and the answer. A title in the text would match too often.
            (product["description"],) * 2,
            ("Price: how much does it cost?", f"Price: {product['price']:.2f} EUR"),
        ]
        facts += [(f"{name}: {value}",) * 2 for name, value in product["specs"].items()]
        facts += [(f"{qa['question']} {qa['answer']}", qa["answer"]) for qa in product["qna"]]
        for number, (text, answer) in enumerate(facts):
            metadata = {"key": f"{product['id']}.{number}", "product_id": product["id"]}
            cases.append(Case({"fact": text}, f"{product['title']} — {answer}", metadata=metadata))
    return cases


def review_cases() -> list[Case]:
    """Return a case for each review."""
    cases = []
    for review in records("reviews"):
        text, stars = f"{review['title']}. {review['text']}", review["stars"]
        solution = f"{stars} of 5 stars, {review['author']}: “{text}”"
        metadata = {"key": review["id"], "product_id": review["product_id"], "stars": stars}
        cases.append(Case({"review": text}, solution, metadata=metadata))
    return cases


def order_cases() -> list[Case]:
    """Return a case for each ordered item, with its customer."""
    newest = max(date.fromisoformat(order["date"]) for order in records("orders"))
    cases = []
    for order in records("orders"):
        solution = {"parcel": order["parcel"], "date": order["date"]}
        quality = -(newest - date.fromisoformat(order["date"])).days / 365
        for item in order["items"]:
            metadata = {
                "key": f"{order['id']}.{item['product_id']}",
                "customer": order["customer"],
                "order_id": order["id"],
                "product_id": item["product_id"],
                "title": item["title"],
                "date": order["date"],
            }
            problem = {"title": item["title"]}
            cases.append(Case(problem, solution, quality=quality, metadata=metadata))
    return cases


def help_cases() -> list[Case]:
    """Return a case for each help article."""
    return [
        Case(
            {part: article[part] for part in ("asked", "title", "text")},
            f"{article['title']}\n{article['text']}",
            metadata={"key": article["id"], "topic": article["topic"]},
        )
        for article in records("help")
    ]
