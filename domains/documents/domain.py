"""The documents domain: a user asks what their own documents say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from casewright.domains.documents.tools import document_toolbox
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.own_answer import Option
from casewright.domains.waiting import open_waiting
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery
from casewright.planner.plan_cases import plan_store
from casewright.stores import Encoder
from casewright.stores.documents.cases import document_schema
from casewright.stores.engines.embedded import RECORD
from casewright.stores.feedback import SentenceStrategy

QUESTIONS = (
    "What are these documents about?",
    "How is it installed?",
    "Which settings are there, and what are their defaults?",
    "Where is it explained what happens when something fails?",
    "Why was it done this way?",
    "Which function reads the file, and what does it return?",
)


def open_documents(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open what was ingested into a folder; ``anew`` changes nothing: only ingesting does.

    Raises:
        InputError: Nothing is stored there.
    """
    return open_documents_at(folder, encoder)


def open_documents_at(location: Path | str, encoder: Encoder) -> OpenDomain:
    """Open what was ingested into a folder, or a server by its URL.

    Raises:
        InputError: Nothing is stored there.
    """
    # Opening a folder would make it.
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
    return OpenDomain(document_toolbox(documents), plans, stores)


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with a search that goes on from what is relevant."""
    documents = opened.stores["documents"]
    return replace(
        opened, toolbox=document_toolbox(documents, make(documents, SentenceStrategy(), None))
    )


def _nothing(location: Path | str) -> InputError:
    return InputError(
        f"No documents are stored in {location}. Run: casewright ingest PATH. With --into, name "
        "the same place here by --store."
    )


def queries() -> list[AnnotatedQuery]:
    """Return the domain's annotated queries: each is answered by one search."""
    plan = "s1 = document_search(query=question)"
    return [
        AnnotatedQuery.read({"id": f"d{number}", "query": query, "plan": plan})
        for number, query in enumerate(QUESTIONS, 1)
    ]


DOMAIN = Domain(
    name="documents",
    description="A user asks what their own documents say: those that casewright ingest read.",
    questions=QUESTIONS[:3],
    open=open_documents,
    queries=queries,
    options=(Option("store", "What ingest --into was given: a folder or a URL.", "LOCATION"),),
    openers={"store": lambda folder, encoder, location: open_documents_at(location, encoder)},
    mark=RECORD,
    looping=looping,
)
