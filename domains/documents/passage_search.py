"""The search for passages, by embeddings and by words together, then by late interaction."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from casewright.domains.documents.word_index import WordIndex
from casewright.stores import Case, CaseStore, Hit
from casewright.stores.documents.splitter import HEADING_SEPARATOR
from casewright.stores.encoders.late_interaction import late_interaction
from casewright.stores.feedback.sufficiency import SufficiencyJudge, hit_features
from casewright.stores.hit import DECIMALS

#: Maximum number of passages of a result, and of candidates of each of the two searches.
PASSAGES, CANDIDATES = 5, 20
#: Maximum number of best candidates that are read again for late interaction, and its weight beside
#: a relevance and a share of BM25. Between 2 and 6 the weight matters little.
READ_AGAIN, LATE_WEIGHT = 12, 3.0
#: The name of the late interaction among a hit's facet scores.
TOKENS = "tokens"
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
        """Return the best passages, at most ``PASSAGES``.

        Candidates are ordered by relevance plus share of BM25, and the best of them again by this
        sum plus their late interaction with the question, which is their facet score ``TOKENS``. An
        encoder without vectors of tokens leaves the first order.
        """
        question = self._documents.question(query)
        if question is None:
            return []
        hits = [found.hit for found in question.best(CANDIDATES)]
        index = self._words()
        shares = index.shares(query) if index else {}
        by_words = heapq.nlargest(CANDIDATES, shares, key=lambda id_: shares[id_])
        hits += question.hits([*{*by_words} - {hit.case.id for hit in hits}])
        scores = {hit.case.id: hit.relevance + shares.get(hit.case.id, 0.0) for hit in hits}
        hits = _by_score(hits, scores)[:READ_AGAIN]
        encoder = self._documents.schema.facets[0].encoder
        similarities = late_interaction(encoder, query, [_read_text(hit.case) for hit in hits])
        if similarities is not None:
            pairs = list(zip(hits, similarities, strict=True))
            hits = [replace(h, facet_scores={**h.facet_scores, TOKENS: s}) for h, s in pairs]
            scores = {h.case.id: scores[h.case.id] + LATE_WEIGHT * s for h, s in pairs}
        return _by_score(hits, scores)[:PASSAGES]

    def features(self, query: str, hits: Sequence[Hit]) -> tuple[float, ...]:
        """Return the ``FEATURES`` of ``SufficiencyJudge`` of passages that ``best`` returned."""
        index = self._words()
        similarities = [hit.facet_scores[TOKENS] for hit in hits if TOKENS in hit.facet_scores]
        first = hit_features(query, hits, index.rarity if index else None)
        return first if hits and not similarities else (*first, max(similarities, default=0.0))

    def are_sufficient(self, query: str, hits: Sequence[Hit]) -> bool:
        """Return ``True`` if passages probably answer the question."""
        features = self.features(query, hits)
        return SufficiencyJudge.shipped(len(features)).is_sufficient(features)

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


def _read_text(case: Case) -> str:
    """Return the text of a passage for late interaction: its nearest heading, and the text."""
    heading = str(case.problem.get("title", "")).rpartition(HEADING_SEPARATOR)[2]
    return f"{heading}: {case.solution}"


def _by_score(hits: Sequence[Hit], scores: Mapping[str, float]) -> list[Hit]:
    """Return hits by score, then id."""
    return sorted(hits, key=lambda hit: (-round(scores[hit.case.id], DECIMALS), hit.case.id))
