"""What is answered with no, a general and the nearest case's context: the paper's Table 2.

A context is right where the nearest case shares a class with the puzzle. Accuracy is over all
puzzles, faithfulness over those with a right context, negative rejection over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.bench.math24.data import Puzzles
from casewright.bench.math24.retrieval import Represent, nearest
from casewright.domains.math24.decomposition import Class
from casewright.domains.math24.prompts import Kind
from casewright.domains.math24.puzzle import Problem

#: Whether an answer is right: of a problem, the kind of query, the case's plans and the attempts.
Answer = Callable[[Problem, Kind, Sequence[Class], int], bool]


@dataclass(frozen=True, slots=True)
class Answered:
    """Shares of right answers, means of the runs.

    Attributes:
        accuracy: Of all puzzles.
        faithfulness: Of those whose nearest case shares a class; ``None`` where there are none.
        negative_rejection: Of the others.
    """

    accuracy: float
    faithfulness: float | None
    negative_rejection: float | None


def answered(
    puzzles: Puzzles,
    represent: Represent,
    answer: Answer,
    kind: Kind,
    runs: Sequence[int],
    attempts: int = 1,
) -> Answered:
    """Ask for every test puzzle of the runs.

    Args:
        puzzles: With their splits.
        represent: What cases are retrieved by.
        answer: Who answers.
        kind: Of the query.
        runs: Which.
        attempts: How often it may be tried: after the first the answerer is told what was wrong.
    """
    shares: list[list[float]] = [[], [], []]
    for run in runs:
        training = puzzles.training(run)
        vectors = represent(training, [puzzles.classes[place] for place in training], run)
        order = nearest(vectors, puzzles.splits[run], training)
        right: list[list[bool]] = [[], [], []]
        for test, row in zip(puzzles.splits[run], order, strict=True):
            plans = sorted(puzzles.classes[row[0]], reverse=True)
            good = bool(puzzles.classes[test] & puzzles.classes[row[0]])
            done = answer(puzzles.problems[test], kind, plans, attempts)
            right[0].append(done)
            right[1 if good else 2].append(done)
        for share, found in zip(shares, right, strict=True):
            if found:
                share.append(float(np.mean(found)))
    means = [float(np.mean(share)) if share else None for share in shares]
    return Answered(means[0] or 0.0, means[1], means[2])
