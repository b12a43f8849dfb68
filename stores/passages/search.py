"""The search for passages, by embeddings and by words together, then by a cross-encoder."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from casewright.stores import Case, CaseStore, Hit
from casewright.stores.documents.cases import ChunkPlace, chunk_place, neighbour_places
from casewright.stores.documents.quotable import cross_encoder_input, quotables
from casewright.stores.encoders.cross_encoder import answer_logits, log_sum
from casewright.stores.feedback.sufficiency import SufficiencyJudge, hit_features
from casewright.stores.hit import DECIMALS, near_best
from casewright.stores.passages.text import passage_markdown
from casewright.stores.passages.word_index import WordIndex

#: Maximum number of passages of a result, and of candidates of each of the two searches.
PASSAGES, CANDIDATES = 5, 20
#: Maximum number of best candidates that the cross-encoder reads, and the weight of their first
#: score beside its logit.
READ, SEARCH_WEIGHT = 16, 8.0
#: Number of best candidates beside which more passages are read, and how far in their files.
EXPANDED, DISTANCE = 2, 1
#: A passage is left out if its relevance is below this share of the best one's, and its logit is so
#: many nats below the best one's.
MIN_SHARE_OF_BEST, MARGIN = 0.6, 3.0
#: The name, among a hit's facet scores, of the cross-encoder's logit that the passage answers.
ANSWER = "answer"
#: Maximum of the judge's third feature, and minus its minimum, so that words can outweigh it.
MAX_ANSWER = 6.0
#: Maximum number of passages whose words are indexed, since the index is in memory.
MAX_INDEXED = 50_000


class PassageSearch:
    """Searches a store of documents. Thread-safe.

    The words of the passages are indexed at the first search, except for a store on a server, which
    other programs may change at any time.
    """

    def __init__(self, documents: CaseStore) -> None:
        self._documents = documents
        self._encoder = documents.schema.facets[0].encoder
        self._indexed = "://" not in documents.location
        self._index: WordIndex | None = None
        self._ids: dict[ChunkPlace | None, str] = {}
        self._lock = threading.Lock()

    def best(self, query: str) -> list[Hit]:
        """Return the best passages, at most ``PASSAGES``.

        The best candidates are ordered by their score and the logit of the encoder's cross-encoder,
        if any, which becomes their facet score ``ANSWER``.
        """
        hits, scores = self.candidates(query, READ)
        hits = self.with_answers(query, hits)
        if not any(ANSWER in hit.facet_scores for hit in hits):
            return near_best(hits[:PASSAGES], 0.0, MIN_SHARE_OF_BEST)
        beside, scores_beside = self._beside(query, _by_total(hits, scores)[:EXPANDED], scores)
        hits += self.with_answers(query, beside)
        hits = _by_total(hits, scores | scores_beside)[:PASSAGES]
        logits = {hit.case.id: hit.facet_scores[ANSWER] for hit in hits}
        lowest = max(logits.values()) - MARGIN
        near = {hit.case.id for hit in near_best(hits, 0.0, MIN_SHARE_OF_BEST)}
        return [hit for hit in hits if hit.case.id in near or logits[hit.case.id] > lowest]

    def with_answers(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits with their facet score ``ANSWER``, if the encoder has a cross-encoder."""
        passages = [cross_encoder_input(quotables(passage_markdown(hit.case))) for hit in hits]
        logits = answer_logits(self._encoder, query, passages)
        if logits is None:
            return list(hits)
        pairs = zip(hits, map(log_sum, logits), strict=True)
        return [replace(h, facet_scores={**h.facet_scores, ANSWER: logit}) for h, logit in pairs]

    def candidates(self, query: str, count: int) -> tuple[list[Hit], dict[str, float]]:
        """Return passages by relevance plus share of BM25, the best first, and this sum by id."""
        question = self._documents.question(query)
        if question is None:
            return [], {}
        hits = [found.hit for found in question.best(CANDIDATES)]
        index = self._words()
        shares = index.shares(query) if index else {}
        by_words = heapq.nlargest(CANDIDATES, shares, key=lambda id_: shares[id_])
        hits += question.hits([*{*by_words} - {hit.case.id for hit in hits}])
        scores = {hit.case.id: hit.relevance + shares.get(hit.case.id, 0.0) for hit in hits}
        return _by_score(hits, scores)[:count], scores

    def _beside(
        self, query: str, hits: Sequence[Hit], known: Collection[str]
    ) -> tuple[list[Hit], dict[str, float]]:
        """Return the passages before and after hits, without known ids, and their scores by id."""
        index, question = self._words(), self._documents.question(query)
        if index is None or question is None:
            return [], {}
        places = [place for hit in hits for place in neighbour_places(hit.case, DISTANCE)]
        ids = {self._ids[place] for place in places if place in self._ids}.difference(known)
        beside, shares = question.hits(sorted(ids)), index.shares(query)
        return beside, {h.case.id: h.relevance + shares.get(h.case.id, 0.0) for h in beside}

    def features(self, query: str, hits: Sequence[Hit]) -> tuple[float, ...]:
        """Return the ``FEATURES`` of ``SufficiencyJudge`` of passages that ``best`` returned."""
        index = self._words()
        first = hit_features(query, hits, index.rarity if index else None)
        if answer_logits(self._encoder, query, []) is None:
            return first
        logits = [hit.facet_scores[ANSWER] for hit in hits if ANSWER in hit.facet_scores]
        return *first, min(max(log_sum(logits), -MAX_ANSWER), MAX_ANSWER)

    def are_sufficient(self, query: str, hits: Sequence[Hit]) -> bool:
        """Return ``True`` if passages probably answer the question."""
        features = self.features(query, hits)
        return bool(hits) and SufficiencyJudge.shipped(len(features)).is_sufficient(features)

    def _words(self) -> WordIndex | None:
        with self._lock:
            if self._indexed and self._index is None:
                cases = self._documents.all() if self._documents.count() <= MAX_INDEXED else []
                self._indexed = bool(cases)
                if cases:
                    self._index = WordIndex({case.id: _text(case) for case in cases})
                    self._ids = {chunk_place(case): case.id for case in cases}
            return self._index


def _text(case: Case) -> str:
    """Return the text of a passage to be indexed: its title, which counts twice, file and text."""
    title, source = case.problem.get("title", ""), case.metadata.get("source", "")
    return f"{title} {title} {source} {case.solution}"


def _by_total(hits: Sequence[Hit], scores: Mapping[str, float]) -> list[Hit]:
    """Return hits by the sum of their weighted score and their logit, then id."""
    totals = {
        hit.case.id: SEARCH_WEIGHT * scores[hit.case.id] + hit.facet_scores[ANSWER] for hit in hits
    }
    return _by_score(hits, totals)


def _by_score(hits: Sequence[Hit], scores: Mapping[str, float]) -> list[Hit]:
    """Return hits by score, then id."""
    return sorted(hits, key=lambda hit: (-round(scores[hit.case.id], DECIMALS), hit.case.id))
