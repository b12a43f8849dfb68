"""One set of cases in a store, its questions asked of it under any weighting."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from casewright.bench.legal.data import QaSet
from casewright.bench.legal.measures import KS, Ranks, Scores, Weighting, f1_at_k
from casewright.bench.legal.weights import Cosines, blend
from casewright.domains.legal.cases import QA_COMPONENTS, qa_schema
from casewright.stores import CaseStore, Encoder
from casewright.stores.progress import progress_bar

#: The rank of a parent that is not among the cases retrieved: beyond every k.
NOT_FOUND = 1_000_000

Positions = NDArray[np.int64]


class CuedEncoder:
    """An encoder with another cue than its own before queries; cases are embedded without it."""

    def __init__(self, encoder: Encoder, cue: str) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.cue = cue

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        return self._encoder.embed(texts)


class Trial:
    """A set's cases in a store in memory. Use it in a ``with`` block.

    Attributes:
        found: The set.
        parents: Array (questions, 2): the parents' columns in ``cosines``.
        order: Array (cases,): each case's place among the cases sorted by id.
    """

    def __init__(self, found: QaSet, encoder: Encoder) -> None:
        self.found = found
        self._schema = qa_schema(encoder, "bench_legal")
        self._store = CaseStore(self._schema)
        try:
            ids = self._store.add(found.cases)
        except BaseException:
            self._store.close()
            raise
        # Equal cases are one case.
        self._ids = list(dict.fromkeys(ids))
        place = {case_id: at for at, case_id in enumerate(self._ids)}
        asked = [[place[ids[at]] for at in question.parents] for question in found.questions]
        self.parents: Positions = np.array(asked, dtype=np.int64)
        self.order: Positions = np.argsort(np.argsort(np.array(self._ids))).astype(np.int64)
        by_id = dict(zip(ids, found.cases, strict=True))
        self._cases = [by_id[case_id] for case_id in self._ids]
        self._rankings: dict[Weighting, list[list[int]]] = {}

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store.close()

    def __len__(self) -> int:
        return len(self._ids)

    def size(self) -> dict[str, int]:
        """Return how many cases and questions there are, and questions that were left out."""
        return {
            "cases": len(self),
            "questions": len(self.found.questions),
            "questions_left_out": self.found.left_out,
        }

    def rankings(self, weights: Weighting) -> list[list[int]]:
        """Return, for each question, the columns of the cases that the store finds, best first."""
        if weights not in self._rankings:
            place = {case_id: at for at, case_id in enumerate(self._ids)}
            shares = dict(zip(QA_COMPONENTS, weights, strict=True))
            label = f"Searching {self.found.name} by {label_of(weights)}"
            rankings = []
            with progress_bar(label, len(self.found.questions), show=None) as advance:
                for question in self.found.questions:
                    hits = self._store.search(question.text, KS[-1], weights=shares)
                    rankings.append([place[hit.case.id] for hit in hits])
                    advance(1)
            self._rankings[weights] = rankings
        return self._rankings[weights]

    def ranks(self, weights: Weighting, labels: Sequence[int] | None = None) -> Ranks:
        """Return the ranks of the parents, array (questions, 2).

        Args:
            weights: Of the facets.
            labels: Whose parents each question is to find; its own where left out.
        """
        given = range(len(self.parents)) if labels is None else labels
        return np.array(
            [
                [found.index(at) + 1 if at in found else NOT_FOUND for at in self.parents[label]]
                for found, label in zip(self.rankings(weights), given, strict=True)
            ],
            dtype=np.int64,
        )

    def scores(self, weights: Weighting) -> Scores:
        """Return F1@k of every question, array (questions, len(KS))."""
        return f1_at_k(self.ranks(weights))

    def cosines(self) -> Cosines:
        """Return every facet's cosines, array (3, questions, cases)."""
        schema = self._schema
        cases = schema.vectors([case.problem for case in self._cases])
        asked = [schema.query(question.text) for question in self.found.questions]
        queries = schema.vectors(asked, query=True)
        parts = [schema.slices[name] for name in QA_COMPONENTS]
        return np.stack([queries[:, part] @ cases[:, part].T for part in parts]).astype(np.float64)

    def agreement(self, weights: Weighting, cosines: Cosines) -> float:
        """Return the share of questions to which store and cosines give one ranking."""
        scores = blend(cosines, weights)
        best = [np.lexsort((self.order, -row))[: KS[-1]].tolist() for row in scores]
        return float(np.mean([a == b for a, b in zip(best, self.rankings(weights), strict=True)]))


def label_of(weights: Weighting) -> str:
    """Return a weighting as tables show it: question, support, entities."""
    return " ".join(f"{weight:.2f}" for weight in weights)
