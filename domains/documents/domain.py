"""The documents domain: questions about a user's own documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.own_answer import Option
from casewright.domains.search_tools import merge_hits, search_queries, search_toolbox
from casewright.domains.store_opening import open_waiting
from casewright.errors import InputError
from casewright.planner import plan_store
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema, location_text, root_names, roots_of
from casewright.stores.engines.connections import ENGINE_FILE
from casewright.stores.feedback import SentenceStrategy
from casewright.stores.passages.search import MAX_PASSAGES, PassageSearch
from casewright.stores.passages.text import passage_markdown
from casewright.tools import CallContext, Search, Toolbox
from casewright.tools.spec import NEAREST_EVENT

QUESTIONS = (
    "What are these documents about?",
    "How is it installed?",
    "Which settings are there, and what are their defaults?",
    "Where is it explained what happens when something fails?",
    "Why was it done this way?",
    "Which function reads the file, and what does it return?",
)
#: Maximum number of titles in the report on an unanswered question, and maximum length of a title.
MAX_TITLES, MAX_TITLE_LENGTH = 3, 80
#: Returns the domain's annotated queries.
queries = partial(search_queries, "d", "document_search", QUESTIONS)


def open_documents(location: Path | str, encoder: Encoder, rebuild: bool = False) -> OpenDomain:
    """Open the store of a folder or server; raise ``InputError`` if no documents are stored there.

    ``rebuild`` has no effect: only ``casewright ingest`` changes the store.
    """
    # Without this check, ``CaseStore`` would create the folder.
    if "://" not in str(location) and not Path(location).expanduser().is_dir():
        raise _no_documents(location)
    documents = open_waiting(document_schema(encoder), location)
    try:
        if not documents.count():
            raise _no_documents(location)
        plans = plan_store(queries(), encoder)
    except BaseException:
        documents.close()
        raise
    return OpenDomain(_toolbox(documents), plans, {"documents": documents, "plans": plans})


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with a search by relevance feedback."""
    documents = opened.stores["documents"]
    return replace(opened, toolbox=_toolbox(documents, make(documents, SentenceStrategy(), None)))


def _toolbox(documents: CaseStore, loop: Search | None = None) -> Toolbox:
    """Return the toolbox of a store; the hits of ``loop``, if it is given, come first.

    If the passages do not answer the question, the tool only reports the titles of the nearest.
    """
    name_by_root = root_names(roots_of(documents))
    passages = PassageSearch(documents)

    def document_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds passages of the user's own documents and source code."""
        loop_hits = [] if loop is None else loop(query, MAX_PASSAGES, {}, call)
        hits = passages.with_answer_scores(query, merge_hits(loop_hits, passages.best(query)))
        if not passages.are_sufficient(query, hits):
            titles = dict.fromkeys(
                shorten(str(hit.case.problem.get("title", "")), MAX_TITLE_LENGTH, placeholder="…")
                for hit in hits
            )
            call.report({"event": NEAREST_EVENT, "query": query, "titles": [*titles][:MAX_TITLES]})
            return []
        return [
            {"evidence": passage_markdown(case), "source": location_text(case, name_by_root)}
            for case in (hit.case for hit in hits)
        ]

    return search_toolbox(document_search, "what does the manual say about cleaning the filter")


def _no_documents(location: Path | str) -> InputError:
    return InputError(
        f"No documents are stored in {location}. Run: casewright ingest PATH. With --into, give "
        "the same location here as --store."
    )


DOMAIN = Domain(
    name="documents",
    description="A user asks about documents of their own, which casewright ingest has read.",
    questions=QUESTIONS[:3],
    open=open_documents,
    queries=queries,
    options=(Option("store", "The location of ingest --into: a folder or a URL.", "LOCATION"),),
    openers={"store": lambda folder, encoder, location: open_documents(location, encoder)},
    mark=ENGINE_FILE,
    looping=looping,
    reads_passages=True,
)
