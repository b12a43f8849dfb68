"""How source code is searched: by what a question names, and by what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from casewright.domains.code.symbols import symbols_named
from casewright.stores import CaseStore, Hit
from casewright.stores.engines.engine import Where
from casewright.tools import CallContext, Search

#: A search that a tool can be given: what is looked for, and what is known of the call.
CodeSearch = Callable[[str, CallContext], Sequence[Hit]]
#: Chunks that a search by similarity finds, and the most that a search by name does.
CHUNKS, NAMED = 8, 50
#: Weights for a question that names no definition: the schema's own are for names.
UNNAMED: Mapping[str, float] = {"text": 0.8, "title": 0.2}
#: A chunk below this has nothing to do with the question: any is like any other a little.
ON_TOPIC = 0.28
#: A chunk far behind the best one only dilutes the answer.
NEAR_BEST = 0.75


def plain_search(
    store: CaseStore, k: int = CHUNKS, weights: Mapping[str, float] | None = None
) -> CodeSearch:
    """Return one search of the store by similarity, without what is far off.

    Args:
        store: The source tree's store.
        k: The most chunks that it finds.
        weights: Facet name to weight; the schema's by default.
    """

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        hits = store.search(query, k, weights=weights)
        best = max((hit.relevance for hit in hits), default=0.0)
        return [hit for hit in hits if hit.relevance >= max(ON_TOPIC, NEAR_BEST * best)]

    return search


def loop_search(store: CaseStore, named: Search, otherwise: Search) -> CodeSearch:
    """Return a search that goes on from what is relevant.

    Args:
        store: The source tree's store; its symbols are read once, here.
        named: Asked where a question names a definition of the tree.
        otherwise: Asked where it names none.
    """
    known = symbols_of(store)

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        if symbols_named(query, known) or symbols_named(call.question, known):
            return named(query, NAMED, {}, call)
        return otherwise(query, CHUNKS, {}, call)

    return search


def symbol_search(store: CaseStore, otherwise: CodeSearch, most: int = NAMED) -> CodeSearch:
    """Return a search for all chunks of the definitions that a question names.

    Names are looked for in the user's own words too: a plan may have shortened them.

    Args:
        store: The source tree's store; its symbols are read once, here.
        otherwise: Asked where nothing is named that the store knows.
        most: The most chunks that it finds; the nearest to the query, where there are more.
    """
    known = symbols_of(store)

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        symbols = symbols_named(query, known) or symbols_named(call.question, known)
        if not symbols:
            return otherwise(query, call)
        where: Where = {"symbol": symbols}
        return store.search(query, most, where=where)

    return search


def symbols_of(store: CaseStore) -> list[str]:
    """Return the symbols that a store has chunks of, in alphabetical order.

    Raises:
        StoreError: The store cannot be read.
    """
    found = {case.metadata.get("symbol") for case in store.all()}
    return sorted(symbol for symbol in found if isinstance(symbol, str) and symbol)
