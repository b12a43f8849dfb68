"""The one tool of the domain: a search over what was ingested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.domains.united import united
from casewright.stores import CaseStore
from casewright.stores.documents.cases import place
from casewright.stores.documents.roots import root_names, roots_of
from casewright.stores.hit import near_best
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

    def document_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds passages of the user's own documents and source code."""
        confirmed = [] if search is None else search(query, PASSAGES, {}, call)
        near = near_best(documents.search(query, PASSAGES), ON_TOPIC, NEAR_BEST)
        return [
            {"evidence": str(hit.case.solution), "source": place(hit.case, names)}
            for hit in united(confirmed, near)
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
