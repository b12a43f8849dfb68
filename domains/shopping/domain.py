"""The shopping domain: a customer of a retail site asks."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.late_store import late_store
from casewright.domains.shopping import cases
from casewright.domains.shopping.data import NAMES, data_file, records
from casewright.domains.shopping.tools import shopping_toolbox
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.conversations import Conversation
from casewright.planner.plan_cases import plan_case
from casewright.stores import CaseStore, Encoder
from casewright.stores.feedback import SentenceStrategy

#: What makes cases of the data files: other cases, where one of these changes.
MAKERS = ("ids_and_dates.py", "cases.py")


def open_shopping(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Return the shop's stores in a folder, open; build them where needed.

    The plan cases wait for a planner that reads them: the one of the shop's reader does not.
    """
    made = cases.schemas(encoder)
    parts = {
        "products": (made["products"], cases.product_cases),
        "facts": (made["facts"], cases.fact_cases),
        "reviews": (made["reviews"], cases.review_cases),
        "orders": (made["orders"], cases.order_cases),
        "help": (made["help"], cases.help_cases),
    }
    makers = (files("casewright.domains.shopping") / name for name in MAKERS)
    made_of = [*(data_file(name) for name in NAMES if name != "queries"), *makers]
    wanted = digest(made_of, [schema for schema, _ in parts.values()])
    stores = open_built(folder, "shopping", wanted, parts, anew=anew)
    stores["plans"] = late_store(lambda: _open_plans(folder / "plans", encoder, anew))
    return OpenDomain(shopping_toolbox(stores), stores["plans"], stores)


def _open_plans(folder: Path, encoder: Encoder, anew: bool) -> CaseStore:
    schema = plan_schema(encoder)
    parts = {"plans": (schema, lambda: [plan_case(query) for query in queries()])}
    wanted = digest([data_file("queries")], [schema])
    return open_built(folder, "shopping", wanted, parts, anew=anew)["plans"]


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open shop with searches that go on from what is relevant."""
    searched = {name: store for name, store in opened.stores.items() if name != "plans"}
    loops = {name: make(store, SentenceStrategy(), None) for name, store in searched.items()}
    return replace(opened, toolbox=shopping_toolbox(opened.stores, loops))


def queries() -> list[AnnotatedQuery]:
    """Read the annotated queries that ship with the domain."""
    return [AnnotatedQuery.read(record) for record in records("queries")]


def measuring_queries() -> list[AnnotatedQuery]:
    """Read the annotated queries that were written after the planner was frozen."""
    return [AnnotatedQuery.read(record) for record in records("frozen")]


def conversations() -> list[Conversation]:
    """Read the annotated conversations; a third of them is for measuring."""
    return [Conversation.read(record) for record in records("conversations")]


DOMAIN = Domain(
    name="shopping",
    description="A customer of a retail site asks about products, orders, parcels and policies.",
    questions=(
        "How much memory is on my Galaxy phone?",
        "Where is my tablet?",
        "What do other buyers say about the Marlowe Pods?",
        "I need a present for a six-year-old who loves building things",
        "How long do refunds take?",
    ),
    open=open_shopping,
    queries=queries,
    measuring_queries=measuring_queries,
    conversations=conversations,
    scopes={"customer": tuple(record["id"] for record in records("customers"))},
    looping=looping,
    reader=Path(__file__).parent / "reader",
    tool_pools=Path(__file__).parent / "data" / "tool_pools.json",
)
