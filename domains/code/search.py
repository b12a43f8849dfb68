"""Searches of source code: by the names in a question, and by its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from casewright.domains.code.index import CodeIndex
from casewright.domains.code.symbols import symbols_named
from casewright.domains.united import united
from casewright.stores import CaseStore, Hit
from casewright.stores.engines.engine import Where
from casewright.stores.hit import near_best
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
        return near_best(store.search(query, k, weights=weights), ON_TOPIC, NEAR_BEST)

    return search


def symbol_search(
    store: CaseStore, index: CodeIndex, otherwise: CodeSearch, most: int = NAMED
) -> CodeSearch:
    """Return a search for all chunks of the definitions that a question names.

    Names are looked for in the user's own words too: a plan may have shortened them.

    Args:
        store: The source tree's store.
        index: What is known of it.
        otherwise: Asked where nothing is named that the store knows.
        most: The most chunks that it finds; the nearest to the query, where there are more.
    """

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        symbols = _asked_for(query, call, index)
        if not symbols:
            return otherwise(query, call)
        where: Where = {"symbol": symbols}
        return store.search(query, most, where=where)

    return search


def loop_search(store: CaseStore, index: CodeIndex, named: Search, otherwise: Search) -> CodeSearch:
    """Return a search that adds what relevance feedback confirms to what a single search finds.

    Where definitions are named, all that is theirs comes first, and nothing of it is lost. Where
    none is, what was confirmed comes first, then what a search by similarity finds.

    Args:
        store: The source tree's store.
        index: What is known of it.
        named: Loops where a question names a definition of the tree, and returns what was
            confirmed alone.
        otherwise: The same, where a question names none.
    """
    single = plain_search(store, weights=UNNAMED)
    by_symbol = symbol_search(store, index, single)

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        if _asked_for(query, call, index):
            return united(by_symbol(query, call), named(query, NAMED, {}, call))
        return united(otherwise(query, CHUNKS, {}, call), single(query, call))

    return search


def _asked_for(query: str, call: CallContext, index: CodeIndex) -> list[str]:
    symbols = symbols_named(query, index.symbols)
    if symbols or query == call.question:
        return symbols
    return symbols_named(call.question, index.symbols)
