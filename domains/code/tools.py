"""The one tool of the domain: a search of a source tree, by any kind of search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.domains.code.index import CodeIndex
from casewright.domains.code.search import CodeSearch, plain_search
from casewright.stores import Case, CaseStore, Hit
from casewright.stores.documents.cases import place
from casewright.tools import CallContext, Toolbox, ToolExample, tool_from_function


def code_toolbox(
    store: CaseStore, search: CodeSearch | None = None, index: CodeIndex | None = None
) -> Toolbox:
    """Bind the tool to a store.

    Args:
        store: A source tree's store.
        search: What finds the chunks; ``None`` is one search by similarity.
        index: What is known of it; ``None`` reads it.
    """
    names = (index or CodeIndex.of(store)).roots
    find = search or plain_search(store)

    def code_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds functions, methods and classes of a source tree, each with all that was found."""
        return [
            {"evidence": str(case.solution), "source": place(case, names)}
            for case in in_file_order(find(query, call))
        ]

    return Toolbox(
        [
            tool_from_function(
                code_search,
                sources={"query": ("question", "literal")},
                example=ToolExample(
                    "show me the full read method of class Reader",
                    "s1 = code_search(query=question)",
                ),
            )
        ]
    )


def in_file_order(hits: Sequence[Hit]) -> list[Case]:
    """Return the cases of hits, chunks of one definition together and in their file's order.

    Definitions come in the order of their best hits. What is of no definition stays by itself.
    """
    definitions: dict[tuple[str, ...], list[Case]] = {}
    for hit in hits:
        known = hit.case.metadata
        symbol = str(known.get("symbol", ""))
        of = (str(known.get("root", "")), str(known.get("source", "")), symbol)
        definitions.setdefault(of if symbol else (hit.case.id,), []).append(hit.case)
    return [
        case
        for cases in definitions.values()
        for case in sorted(cases, key=lambda case: case.metadata.get("position", 0))
    ]
