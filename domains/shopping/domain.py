"""The shopping domain: a customer of a retail site asks questions."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.shopping import cases
from casewright.domains.shopping.data import FILE_NAMES, data_file, records
from casewright.domains.shopping.tools import shopping_toolbox
from casewright.domains.shopping.vectors import VECTORS_FILE
from casewright.domains.store_opening import lazy_store
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.annotated import Conversation
from casewright.planner.plan_cases import plan_case
from casewright.stores import CachedEncoder, CaseStore, Encoder
from casewright.stores.feedback import SentenceStrategy

#: The modules that convert the data files to cases; the stores are rebuilt when they change.
CASE_MODULES = ("ids_and_dates.py", "cases.py")


def open_shopping(folder: Path, encoder: Encoder, rebuild: bool = False) -> OpenDomain:
    """Open the shop's stores in a folder; build them first if needed.

    The store of plan cases opens at the first use, since a planner with the shop's reader does not
    need it.
    """
    schemas = cases.schemas(encoder)
    if isinstance(encoder, CachedEncoder):
        encoder.lend(VECTORS_FILE)  # the shipped vectors of the data
    modules = (files("casewright.domains.shopping") / name for name in CASE_MODULES)
    # The queries have a digest of their own, in ``_open_plans``.
    sources = [*(data_file(name) for name in FILE_NAMES if name != "queries"), *modules]
    expected_digest = digest(sources, [schema for schema, _ in schemas.values()])
    stores = open_built(folder, "shopping", expected_digest, schemas, rebuild=rebuild)
    stores["plans"] = lazy_store(lambda: _open_plans(folder / "plans", encoder, rebuild))
    return OpenDomain(shopping_toolbox(stores), stores["plans"], stores)


def _open_plans(folder: Path, encoder: Encoder, rebuild: bool) -> CaseStore:
    schema = plan_schema(encoder)
    schemas = {"plans": (schema, lambda: [plan_case(query) for query in queries()])}
    expected_digest = digest([data_file("queries")], [schema])
    return open_built(folder, "shopping", expected_digest, schemas, rebuild=rebuild)["plans"]


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open shop with searches by relevance feedback."""
    search_stores = {name: store for name, store in opened.stores.items() if name != "plans"}
    loops = {name: make(store, SentenceStrategy(), None) for name, store in search_stores.items()}
    return replace(opened, toolbox=shopping_toolbox(opened.stores, loops))


def queries() -> list[AnnotatedQuery]:
    """Return the shipped annotated queries."""
    return [AnnotatedQuery.read(record) for record in records("queries")]


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
    # These queries were written after the planner was frozen.
    measuring_queries=lambda: [AnnotatedQuery.read(record) for record in records("frozen")],
    conversations=lambda: [Conversation.read(record) for record in records("conversations")],
    scopes={"customer": tuple(record["id"] for record in records("customers"))},
    looping=looping,
    reader=Path(__file__).parent / "reader",
    tool_pools=Path(__file__).parent / "data" / "tool_pools.json",
)
