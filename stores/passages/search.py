"""Finds passages by embeddings and words together; a cross-encoder then orders them anew."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from casewright.stores import Case, CaseStore, Hit
from casewright.stores.documents.cases import ChunkPlace, chunk_place, neighbour_places
from casewright.stores.documents.quotable import cross_encoder_input, quotables
from casewright.stores.encoders.cross_encoder import answer_logits, log_sum
from casewright.stores.feedback.sufficiency import SufficiencyJudge, hit_features
from casewright.stores.hit import DECIMALS, near_best
from casewright.stores.passages.text import passage_markdown
from casewright.stores.passages.word_index import WordIndex

MAX_PASSAGES = 5
#: Maximum number of candidates by embeddings, and of candidates by words.
MAX_CANDIDATES = 20
#: Maximum number of candidates that the cross-encoder reads.
MAX_READ = 16
#: A passage's search score is its relevance plus its share of BM25 (see ``WordIndex.shares``). The
#: log-odds that it answers are its logit plus ``SEARCH_WEIGHT * (search score - USUAL_SCORE)``.
SEARCH_WEIGHT = 8.0
USUAL_SCORE = 0.74
#: Number of best candidates whose neighbours the cross-encoder also reads.
EXPANDED_COUNT = 2
#: Maximum distance, in chunks, of these neighbours in the file.
NEIGHBOUR_DISTANCE = 1
#: The share of BM25 that a passage is assumed to have if the store has no index.
USUAL_SHARE = 0.2
#: A passage is left out if its relevance is below this share of the best relevance, and its
#: log-odds are below the best log-odds by more than this gap, in nats.
MIN_SHARE_OF_BEST, MAX_LOG_ODDS_GAP = 0.6, 3.0
#: The name, among a hit's facet scores, of the log-odds that the passage answers.
ANSWER_SCORE = "answer"
#: Maximum magnitude of ``SufficiencyJudge``'s third feature, so that words can outweigh it.
MAX_LOG_ODDS = 6.0
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
        self._can_index = "://" not in documents.location
        self._index: WordIndex | None = None
        self._id_by_place: dict[ChunkPlace | None, str] = {}
        self._latest_query_shares: tuple[str, Mapping[str, float]] = "", {}
        self._lock = threading.Lock()

    def best(self, query: str) -> list[Hit]:
        """Return the best passages, at most ``MAX_PASSAGES``.

        With a cross-encoder, they are ordered by ``ANSWER_SCORE``. If there is also an index, the
        passages before and after the best candidates become candidates too.
        """
        candidates, _ = self.candidates(query, MAX_READ)
        hits = self.with_answer_scores(query, candidates)
        if not any(ANSWER_SCORE in hit.facet_scores for hit in hits):
            return near_best(hits[:MAX_PASSAGES], 0.0, MIN_SHARE_OF_BEST)
        neighbours = self._neighbours(query, _by_answer(hits)[:EXPANDED_COUNT], hits)
        hits = _by_answer([*hits, *self.with_answer_scores(query, neighbours)])[:MAX_PASSAGES]
        limit = hits[0].facet_scores[ANSWER_SCORE] - MAX_LOG_ODDS_GAP
        near_ids = {hit.case.id for hit in near_best(hits, 0.0, MIN_SHARE_OF_BEST)}
        return [h for h in hits if h.case.id in near_ids or h.facet_scores[ANSWER_SCORE] > limit]

    def with_answer_scores(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits with the facet score ``ANSWER_SCORE`` if the encoder has a cross-encoder."""
        passages = [cross_encoder_input(quotables(passage_markdown(hit.case))) for hit in hits]
        logits = answer_logits(self._encoder, query, passages)
        if logits is None:
            return list(hits)
        search_scores, scored_hits = self._search_scores(query, hits), []
        for hit, part_logits in zip(hits, logits, strict=True):
            search_term = SEARCH_WEIGHT * (search_scores[hit.case.id] - USUAL_SCORE)
            facet_scores = {**hit.facet_scores, ANSWER_SCORE: log_sum(part_logits) + search_term}
            scored_hits.append(replace(hit, facet_scores=facet_scores))
        return scored_hits

    def candidates(self, query: str, count: int) -> tuple[list[Hit], dict[str, float]]:
        """Return the passages with the best search scores, and the search scores by id."""
        question = self._documents.question(query)
        if question is None:
            return [], {}
        hits = [found.hit for found in question.best(MAX_CANDIDATES)]
        shares = self._shares(query)
        ids_by_words = heapq.nlargest(MAX_CANDIDATES, shares, key=lambda id_: shares[id_])
        hits += question.hits([*{*ids_by_words} - {hit.case.id for hit in hits}])
        search_scores = self._search_scores(query, hits)
        return _by_score(hits, search_scores)[:count], search_scores

    def _search_scores(self, query: str, hits: Sequence[Hit]) -> dict[str, float]:
        """Return the search score of each hit (relevance plus share of BM25), by id."""
        shares = self._shares(query)
        default = 0.0 if self._index else USUAL_SHARE
        return {hit.case.id: hit.relevance + shares.get(hit.case.id, default) for hit in hits}

    def _shares(self, query: str) -> Mapping[str, float]:
        """Return shares of BM25 by id; the shares for the latest query are kept."""
        if (index := self._word_index()) is None:
            return {}
        latest_query, shares = self._latest_query_shares
        if latest_query != query:
            shares = index.shares(query)
            self._latest_query_shares = query, shares
        return shares

    def _neighbours(self, query: str, hits: Sequence[Hit], known: Sequence[Hit]) -> list[Hit]:
        """Return the passages before and after ``hits``, without the ``known`` passages."""
        question = self._documents.question(query)
        places = [place for hit in hits for place in neighbour_places(hit.case, NEIGHBOUR_DISTANCE)]
        ids = {self._id_by_place[place] for place in places if place in self._id_by_place}
        new_ids = sorted(ids - {hit.case.id for hit in known})
        return question.hits(new_ids) if question else []

    def features(self, query: str, hits: Sequence[Hit]) -> tuple[float, ...]:
        """Return the features that ``SufficiencyJudge`` reads, for passages from ``best``."""
        index = self._word_index()
        word_features = hit_features(query, hits, index.rarity if index else None)
        if answer_logits(self._encoder, query, []) is None:  # There is no cross-encoder.
            return word_features
        log_odds = log_sum([hit.facet_scores[ANSWER_SCORE] for hit in hits])
        return *word_features, min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)

    def are_sufficient(self, query: str, hits: Sequence[Hit]) -> bool:
        """Return ``True`` if passages probably answer the question."""
        features = self.features(query, hits)
        return bool(hits) and SufficiencyJudge.shipped(len(features)).is_sufficient(features)

    def _word_index(self) -> WordIndex | None:
        with self._lock:
            if self._can_index and self._index is None:
                cases = self._documents.all() if self._documents.count() <= MAX_INDEXED else []
                self._can_index = bool(cases)
                if cases:
                    self._index = WordIndex({case.id: _indexed_text(case) for case in cases})
                    self._id_by_place = {chunk_place(case): case.id for case in cases}
            return self._index


def _indexed_text(case: Case) -> str:
    """Return a passage's text for the index: twice the title, then file and text."""
    title, source = case.problem.get("title", ""), case.metadata.get("source", "")
    return f"{title} {title} {source} {case.solution}"


def _by_answer(hits: Sequence[Hit]) -> list[Hit]:
    return _by_score(hits, {hit.case.id: hit.facet_scores[ANSWER_SCORE] for hit in hits})


def _by_score(hits: Sequence[Hit], scores: Mapping[str, float]) -> list[Hit]:
    """Return hits by score, then id."""
    return sorted(hits, key=lambda hit: (-round(scores[hit.case.id], DECIMALS), hit.case.id))
