"""Searches of source code: by the names in a question, and by similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from casewright.domains.code.symbol_index import CodeIndex
from casewright.domains.code.symbols import symbols_named
from casewright.domains.united import united
from casewright.stores import CaseStore, Hit
from casewright.stores.engines.engine import Where
from casewright.stores.hit import near_best
from casewright.tools import CallContext, Search

#: A tool's search, called with the query and the call's context.
CodeSearch = Callable[[str, CallContext], Sequence[Hit]]
#: Maximum number of chunks from a search by similarity, and from a search by name (the nearest).
CHUNKS, NAMED = 8, 50
#: Facet weights for a question that names no definition; the schema's weights are for names.
UNNAMED: Mapping[str, float] = {"text": 0.8, "title": 0.2}
#: Lowest relevance of a chunk that is related to the question.
ON_TOPIC = 0.28
#: Lowest relevance of a chunk, as a share of the best chunk's relevance.
NEAR_BEST = 0.75


def symbol_search(store: CaseStore, index: CodeIndex) -> CodeSearch:
    """Return a search for the definitions that a question names, or else by similarity.

    A search by name returns all chunks of a definition. Names are also looked up in the user's
    question, which the plan's query may shorten.
    """

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        symbols = _symbols(query, call, index)
        if not symbols:
            return _similar(store, query)
        where: Where = {"symbol": symbols}
        return store.search(query, NAMED, where=where)

    return search


def loop_search(store: CaseStore, index: CodeIndex, named: Search, unnamed: Search) -> CodeSearch:
    """Return a search that joins a single search with the hits that relevance feedback confirms.

    If a question names definitions, their chunks come first, followed by the hits of the loop
    ``named``; otherwise the hits that the loop ``unnamed`` confirms come first.
    """
    by_symbol = symbol_search(store, index)

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        if _symbols(query, call, index):
            return united(by_symbol(query, call), named(query, NAMED, {}, call))
        return united(unnamed(query, CHUNKS, {}, call), _similar(store, query))

    return search


def _similar(store: CaseStore, query: str) -> Sequence[Hit]:
    return near_best(store.search(query, CHUNKS, weights=UNNAMED), ON_TOPIC, NEAR_BEST)


def _symbols(query: str, call: CallContext, index: CodeIndex) -> list[str]:
    symbols = symbols_named(query, index.symbols)
    if symbols or query == call.question:
        return symbols
    return symbols_named(call.question, index.symbols)
