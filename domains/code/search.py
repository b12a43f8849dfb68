"""Searches of source code: by the names in a question, and by similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from casewright.domains.code.symbol_index import CodeIndex
from casewright.domains.code.symbols import symbols_named
from casewright.domains.search_tools import merge_hits
from casewright.stores import CaseStore, Hit
from casewright.stores.engines.engine import Where
from casewright.stores.hit import near_best
from casewright.tools import CallContext, Search

#: A search that a tool calls with the query and the call's context.
CodeSearch = Callable[[str, CallContext], Sequence[Hit]]
#: Maximum numbers of chunks: from a search by similarity, and from a search by name.
MAX_CHUNKS, MAX_NAMED_CHUNKS = 8, 50
#: Facet weights for a question that names no definition; other questions use the schema's weights.
UNNAMED_WEIGHTS: Mapping[str, float] = {"text": 0.8, "title": 0.2}
#: A chunk with a lower relevance is not related to the question.
MIN_RELEVANCE = 0.28
#: Lowest relevance of a chunk, as a share of the best chunk's relevance.
MIN_SHARE_OF_BEST = 0.75


def symbol_search(store: CaseStore, index: CodeIndex) -> CodeSearch:
    """Return a search for named definitions; if none is named, it searches by similarity.

    A search by name returns all chunks of a definition. If the query names no definition, the names
    in the user's question count, since the query may be a part of this question.
    """

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        symbols = _named_symbols(query, call, index)
        if not symbols:
            return _similar(store, query)
        where: Where = {"symbol": symbols}
        return store.search(query, MAX_NAMED_CHUNKS, where=where)

    return search


def loop_search(
    store: CaseStore, index: CodeIndex, name_loop: Search, text_loop: Search
) -> CodeSearch:
    """Return a search that merges a search without feedback with one of two feedback loops.

    If a question names definitions, their chunks come first, and the hits of ``name_loop`` follow.
    Otherwise the hits of ``text_loop`` come first, and the hits of a search by similarity follow.
    """
    search_by_name = symbol_search(store, index)

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        if _named_symbols(query, call, index):
            hits = search_by_name(query, call)
            return merge_hits(hits, name_loop(query, MAX_NAMED_CHUNKS, {}, call))
        return merge_hits(text_loop(query, MAX_CHUNKS, {}, call), _similar(store, query))

    return search


def _similar(store: CaseStore, query: str) -> Sequence[Hit]:
    hits = store.search(query, MAX_CHUNKS, weights=UNNAMED_WEIGHTS)
    return near_best(hits, MIN_RELEVANCE, MIN_SHARE_OF_BEST)


def _named_symbols(query: str, call: CallContext, index: CodeIndex) -> list[str]:
    return symbols_named(query, index.symbols) or symbols_named(call.question, index.symbols)
