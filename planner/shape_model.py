"""Which shape a plan should have, learned from plan cases by ridge regression.

Neighbours that vote with equal weights let frequent shapes drown rare ones, and follow what is
asked about rather than what is asked. Here the cases' votes are fitted: a linear map from a
question's features (its embedding, its words and pairs of words, its length in words, sentences
and questions, whether the page is about something)
to a description of the plan (task, feeds, how often each tool is called, number of steps). The
shape whose description is nearest to the predicted one is elected. Fitting takes one linear system,
a fraction of a second, and no language model.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casewright.planner.plan import Plan
from casewright.planner.shape import feeds, shape, task

Floats = NDArray[np.float64]

#: Columns that words and pairs of words are hashed into.
WORD_COLUMNS = 2048
#: Scale of the words' part and of the open page's, beside the embedding's length of 1.
WORD_SCALE, PAGE_SCALE = 0.7, 0.3
#: Scale of the marks that several things are asked.
LENGTH_SCALE = 1.0
#: Ridge penalty.
PENALTY = 1.0
#: Scale of the number of steps, beside 1 for task, feeds and calls.
STEPS_SCALE = 0.3
#: How much the logarithm of a shape's number of cases counts against squared distance.
PRIOR = 0.1

_TOKEN = re.compile(r"\w+|\?")
#: Counts that grow with the number of things asked, each with the count that is plenty.
_LENGTHS = ((re.compile(r"\?"), 3), (re.compile(r"[,.;!?]"), 6), (re.compile(r"\w+"), 40))


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape that plan cases have, and which of them have it (by position)."""

    text: str
    plan: Plan
    cases: tuple[int, ...]


class ShapeModel:
    """Elects the shape of a plan.

    Args:
        questions: The plan cases' questions.
        vectors: Their embeddings, unit vectors, array (n, dimension).
        pages: Whether the page was about something that plans refer to, for each.
        plans: Their plans.
    """

    def __init__(
        self,
        questions: Sequence[str],
        vectors: NDArray[np.float32],
        pages: Sequence[bool],
        plans: Sequence[Plan],
    ) -> None:
        members: dict[str, list[int]] = {}
        for position, plan in enumerate(plans):
            members.setdefault(shape(plan), []).append(position)
        self.shapes = [Shape(t, plans[m[0]], tuple(m)) for t, m in members.items()]
        if not self.shapes:
            return
        counts = Counter(token for question in questions for token in _tokens(question))
        self._rarity = {t: math.log(len(questions) / c) for t, c in counts.items() if c > 1}
        by_shape = _describe([known.plan for known in self.shapes])
        described = np.empty((len(plans), by_shape.shape[1]))
        for row, known in zip(by_shape, self.shapes, strict=True):
            described[list(known.cases)] = row
        self._described = by_shape
        self._prior = PRIOR * np.log([len(s.cases) for s in self.shapes])
        features = self._features(questions, vectors, pages)
        self._map = _ridge(features, described)

    def ranked(
        self,
        question: str,
        vector: NDArray[np.float32],
        page: bool,
        admitted: Callable[[Plan], bool],
    ) -> list[tuple[Shape, float]]:
        """Return the shapes that are admitted, the elected one first, each with its distance.

        Args:
            question: The question.
            vector: Its embedding, array (d,).
            page: Whether the page is about something that plans refer to.
            admitted: Says which plans are.

        Returns:
            Shapes with their squared distances from the predicted description, less what they have
            for being frequent; a distance may be negative.
        """
        if not self.shapes:
            return []
        predicted = self._features([question], vector[None], [page]) @ self._map
        distance = ((self._described - predicted) ** 2).sum(axis=1) - self._prior
        order = np.argsort(distance, kind="stable")
        return [
            (self.shapes[i], float(distance[i])) for i in order if admitted(self.shapes[i].plan)
        ]

    def _features(
        self, questions: Sequence[str], vectors: NDArray[np.float32], pages: Sequence[bool]
    ) -> Floats:
        words = np.zeros((len(questions), WORD_COLUMNS))
        for row, question in enumerate(questions):
            for token in _tokens(question):
                hashed = zlib.crc32(token.encode())
                sign = 1.0 if hashed & 1 else -1.0
                words[row, (hashed >> 1) % WORD_COLUMNS] += sign * self._rarity.get(token, 0.0)
        norms = np.linalg.norm(words, axis=1, keepdims=True)
        words *= WORD_SCALE / np.maximum(norms, 1e-9)
        lengths = LENGTH_SCALE * np.array(
            [[min(len(p.findall(q)), most) / most for p, most in _LENGTHS] for q in questions]
        )
        page = PAGE_SCALE * np.asarray(pages, dtype=np.float64)[:, None]
        return np.hstack(
            [vectors.astype(np.float64), words, lengths, page, np.ones((len(questions), 1))]
        )


def _tokens(question: str) -> set[str]:
    words = _TOKEN.findall(question.casefold())
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}


def _describe(plans: Sequence[Plan]) -> Floats:
    """Return one row a plan: its task, its feeds, how often it calls each tool, its length."""
    known = [(task(plan), set(feeds(plan)), plan.tools) for plan in plans]
    tasks = sorted({own for own, _, _ in known})
    sources = sorted({feed for _, own, _ in known for feed in own})
    tools = sorted({tool for _, _, own in known for tool in own})
    return np.array(
        [
            [
                *(float(own_task == name) for name in tasks),
                *(float(name in own_feeds) for name in sources),
                *(float(min(own_tools.count(name), 2)) for name in tools),
                STEPS_SCALE * len(own_tools),
            ]
            for own_task, own_feeds, own_tools in known
        ]
    )


def _ridge(features: Floats, targets: Floats) -> Floats:
    """Solve ridge regression in whichever of its two forms is the smaller system."""
    cases, columns = features.shape
    if cases <= columns:
        gram = features @ features.T
        gram[np.diag_indices(cases)] += PENALTY
        dual: Floats = (features.T @ np.linalg.solve(gram, targets)).astype(np.float64)
        return dual
    gram = features.T @ features
    gram[np.diag_indices(columns)] += PENALTY
    primal: Floats = np.linalg.solve(gram, features.T @ targets).astype(np.float64)
    return primal
