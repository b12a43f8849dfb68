"""Election of a tool sequence where many plan cases share few of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.example_cases import PlanCase
from casewright.stores import default_encoder

#: Plan cases that an election takes at least, and at least for each tool sequence.
FEWEST, EACH = 40, 8
#: Ridge penalty; what is added to a share; and weight of its logarithm beside a plan's: chosen on
#: the legal domain's 60 questions, cross-validated.
PENALTY, LEAST, WEIGHT = 0.3, 0.05, 2.0
Sequences = tuple[str, ...]


class ToolElection:
    """Expects tool sequences of a question by ridge regression on embeddings of plan cases.

    Args:
        cases: Plan cases.
    """

    def __init__(self, cases: Sequence[PlanCase]) -> None:
        self._cases = cases
        self._sequences = sorted({case.plan.tools for case in cases})

    @property
    def decides(self) -> bool:
        """Whether there are cases enough for each tool sequence."""
        return len(self._cases) >= max(FEWEST, EACH * len(self._sequences))

    @cached_property
    def _weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of embeddings (dimensions, sequences), and the sequences' shares."""
        questions = [case.question for case in self._cases]
        vectors = np.asarray(default_encoder().embed(questions), dtype=np.float64)
        known = [[case.plan.tools == own for own in self._sequences] for case in self._cases]
        shares = np.array(known, dtype=np.float64)
        mean = shares.mean(0)
        kernel = vectors @ vectors.T + PENALTY * np.eye(len(vectors))
        return vectors.T @ np.linalg.solve(kernel, shares - mean), mean

    def scores(self, question: str, sequences: Sequence[Sequences]) -> list[float]:
        """Return what to add to the log-probabilities of plans with these tool sequences."""
        weights, mean = self._weights
        shares = np.asarray(default_encoder().embed([question]))[0] @ weights + mean
        by_sequence = dict(zip(self._sequences, shares.tolist(), strict=True))
        return [WEIGHT * math.log(max(by_sequence.get(own, 0.0), 0.0) + LEAST) for own in sequences]
