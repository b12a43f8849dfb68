"""The documents domain: a user asks what their own documents say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.own_answer import Option
from casewright.domains.united import search_queries, search_toolbox, united
from casewright.domains.waiting import open_waiting
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery
from casewright.planner.plan_cases import plan_store
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema, place, root_names, roots_of
from casewright.stores.engines.connections import RECORD
from casewright.stores.feedback import SentenceStrategy
from casewright.stores.hit import near_best
from casewright.tools import CallContext, Search, Toolbox

QUESTIONS = (
    "What are these documents about?",
    "How is it installed?",
    "Which settings are there, and what are their defaults?",
    "Where is it explained what happens when something fails?",
    "Why was it done this way?",
    "Which function reads the file, and what does it return?",
)
#: Most passages of a search.
PASSAGES = 5
#: Lowest relevance of a passage that has to do with the question.
ON_TOPIC = 0.23
#: Lowest relevance of a passage, as a share of the best one's.
NEAR_BEST = 0.6


def open_documents(location: Path | str, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open what was ingested into a folder or server; ``InputError`` if nothing is stored there.

    ``anew`` has no effect: only ingesting changes the store.
    """
    # Opening a folder would create it.
    if "://" not in str(location) and not Path(location).expanduser().is_dir():
        raise _nothing(location)
    documents = open_waiting(document_schema(encoder), location)
    try:
        if not documents.count():
            raise _nothing(location)
        plans = plan_store(queries(), encoder)
    except BaseException:
        documents.close()
        raise
    stores = {"documents": documents, "plans": plans}
    return OpenDomain(_toolbox(documents), plans, stores)


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with a search by relevance feedback."""
    documents = opened.stores["documents"]
    return replace(opened, toolbox=_toolbox(documents, make(documents, SentenceStrategy(), None)))


def _toolbox(documents: CaseStore, loop: Search | None = None) -> Toolbox:
    """Return the toolbox of a store; hits that a loop confirms come first."""
    names = root_names(roots_of(documents))

    def document_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds passages of the user's own documents and source code."""
        confirmed = [] if loop is None else loop(query, PASSAGES, {}, call)
        near = near_best(documents.search(query, PASSAGES), ON_TOPIC, NEAR_BEST)
        return [
            {"evidence": str(hit.case.solution), "source": place(hit.case, names)}
            for hit in united(confirmed, near)
        ]

    return search_toolbox(document_search, "what does the manual say about cleaning the filter")


def _nothing(location: Path | str) -> InputError:
    return InputError(
        f"No documents are stored in {location}. Run: casewright ingest PATH. With --into, name "
        "the same place here by --store."
    )


def queries() -> list[AnnotatedQuery]:
    """Return the domain's annotated queries."""
    return search_queries("d", "document_search", QUESTIONS)


DOMAIN = Domain(
    name="documents",
    description="A user asks what their own documents say: those that casewright ingest read.",
    questions=QUESTIONS[:3],
    open=open_documents,
    queries=queries,
    options=(Option("store", "What ingest --into was given: a folder or a URL.", "LOCATION"),),
    openers={"store": lambda folder, encoder, location: open_documents(location, encoder)},
    mark=RECORD,
    looping=looping,
)
