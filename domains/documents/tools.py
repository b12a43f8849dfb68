"""The one tool of the domain: a search over what was ingested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.domains.united import united
from casewright.stores import CaseStore, Hit
from casewright.stores.documents.cases import place
from casewright.stores.documents.roots import root_names, roots_of
from casewright.tools import CallContext, Search, Toolbox, ToolExample, tool_from_function

#: Passages that a search finds.
PASSAGES = 5
#: A passage below this has nothing to do with the question: any is like any other a little.
ON_TOPIC = 0.23
#: A passage far behind the best one only dilutes the answer.
NEAR_BEST = 0.6


def document_toolbox(documents: CaseStore, search: Search | None = None) -> Toolbox:
    """Bind the tool to the store, and learn once what its roots are to be called.

    Args:
        documents: What was ingested.
        search: Searches with relevance feedback: what it confirms comes before what a single
            search finds.
    """
    names = root_names(roots_of(documents))

    def near(query: str) -> Sequence[Hit]:
        hits = documents.search(query, PASSAGES)
        best = max((hit.relevance for hit in hits), default=0.0)
        return [hit for hit in hits if hit.relevance >= max(ON_TOPIC, NEAR_BEST * best)]

    def document_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds passages of the user's own documents and source code."""
        confirmed = [] if search is None else search(query, PASSAGES, {}, call)
        hits = united(confirmed, near(query))
        return [
            {"evidence": str(hit.case.solution), "source": place(hit.case, names)} for hit in hits
        ]

    return Toolbox(
        [
            tool_from_function(
                document_search,
                sources={"query": ("question", "literal")},
                example=ToolExample(
                    "what does the manual say about cleaning the filter",
                    "s1 = document_search(query=question)",
                ),
            )
        ]
    )
