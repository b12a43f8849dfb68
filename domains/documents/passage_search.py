"""The search for passages, by embeddings and by words together."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence

from casewright.domains.documents.word_index import WordIndex
from casewright.stores import Case, CaseStore, Hit
from casewright.stores.feedback.sufficiency import SufficiencyJudge, hit_features

#: Maximum number of passages of a result, and of candidates of each of the two searches.
PASSAGES, CANDIDATES = 5, 20
#: Maximum number of passages whose words are indexed, since the index is in memory.
MAX_INDEXED = 50_000


class PassageSearch:
    """Searches a store of documents. Thread-safe.

    The words of the passages are indexed at the first search, except for a store on a server, which
    other programs may change at any time.
    """

    def __init__(self, documents: CaseStore) -> None:
        self._documents = documents
        self._indexed = "://" not in documents.location
        self._index: WordIndex | None = None
        self._lock = threading.Lock()

    def best(self, query: str) -> list[Hit]:
        """Return the best passages, at most ``PASSAGES``, by relevance plus share of BM25."""
        question = self._documents.question(query)
        if question is None:
            return []
        hits = [found.hit for found in question.best(CANDIDATES)]
        index = self._words()
        shares = index.shares(query) if index else {}
        by_words = heapq.nlargest(CANDIDATES, shares, key=lambda id_: shares[id_])
        hits += question.hits([*{*by_words} - {hit.case.id for hit in hits}])
        scores = {hit.case.id: hit.relevance + shares.get(hit.case.id, 0.0) for hit in hits}
        return sorted(hits, key=lambda hit: (-scores[hit.case.id], hit.case.id))[:PASSAGES]

    def features(self, query: str, hits: Sequence[Hit]) -> tuple[float, float]:
        """Return the features of ``SufficiencyJudge`` of passages."""
        index = self._words()
        return hit_features(query, hits, index.rarity if index else None)

    def are_sufficient(self, query: str, hits: Sequence[Hit]) -> bool:
        """Return ``True`` if passages probably answer the question."""
        return SufficiencyJudge.shipped().is_sufficient(self.features(query, hits))

    def _words(self) -> WordIndex | None:
        with self._lock:
            if self._indexed and self._index is None:
                cases = self._documents.all() if self._documents.count() <= MAX_INDEXED else []
                self._indexed = bool(cases)
                if cases:
                    self._index = WordIndex({case.id: _text(case) for case in cases})
            return self._index


def _text(case: Case) -> str:
    """Return the text of a passage to be indexed: its title, which counts twice, file and text."""
    title, source = case.problem.get("title", ""), case.metadata.get("source", "")
    return f"{title} {title} {source} {case.solution}"
