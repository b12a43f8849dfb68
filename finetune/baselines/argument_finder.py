"""The separate argument step: which words of the question an argument is made of.

It is told the plan's shape and looks for each open literal: a logistic regression says of every
word of the question how likely it belongs to this argument, and the argument is the run of
adjacent words that is the likeliest as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.baselines.regression import fit_regression
from casewright.finetune.baselines.settings import ClassifierSettings
from casewright.finetune.baselines.word_features import COLUMNS, Slot, word_rows
from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.literals import Word, text_literals, with_literals, words_of
from casewright.planner.spans import is_span, normalized


@dataclass(frozen=True, slots=True)
class ArgumentFinder:
    """Fills the open literals of a plan.

    Attributes:
        weights: Of the regression and its intercept, array (``COLUMNS`` + 1,).
    """

    weights: NDArray[np.float32]

    @classmethod
    def fit(cls, queries: Sequence[AnnotatedQuery], settings: ClassifierSettings) -> ArgumentFinder:
        """Train on the literals that are words of their question; others are left out."""
        from scipy.sparse import vstack

        rows, labels = [], []
        for query in queries:
            words = words_of(query.query)
            for (_, _, text), slot in zip(
                text_literals(query.plan), _slots(query.plan), strict=True
            ):
                inside = _covered(words, text, query.query)
                if any(inside):
                    rows.append(word_rows(words, slot))
                    labels += inside
        if all(labels) or not any(labels):
            # No plan has a literal, or no question a word beside it: every word is as good.
            return cls(np.zeros(COLUMNS + 1, np.float32))
        return cls(fit_regression(vstack(rows, format="csr"), labels, settings))

    def filled(self, plan: Plan, question: str) -> Plan:
        """Return the plan with words of the question as its literals, each word used once.

        Where one argument of one tool is looked for several times, its literals stand in the
        question's order. They are left open where the question has too few words.
        """
        words = words_of(question)
        free = np.ones(len(words), dtype=bool)
        runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for slot in _slots(plan):
            scores = word_rows(words, slot) @ self.weights[:-1] + self.weights[-1]
            run = _best_run(words, scores, free)
            if run is not None:
                free[run[0] : run[1] + 1] = False
                runs[slot.name].append(run)
        ordered = {name: iter(sorted(found)) for name, found in runs.items()}
        texts: dict[tuple[int, str], str] = {}
        for (index, name, _), slot in zip(text_literals(plan), _slots(plan), strict=True):
            run = next(ordered.get(slot.name, iter(())), None)
            if run is not None:
                texts[index, name] = question[words[run[0]].start : words[run[1]].end]
        return with_literals(plan, texts)


def _slots(plan: Plan) -> Iterator[Slot]:
    found = text_literals(plan)
    for place, (index, name, _) in enumerate(found):
        yield Slot(f"{plan.steps[index].tool}.{name}", place, len(found))


def _covered(words: Sequence[Word], text: str, question: str) -> list[bool]:
    """Return which words of a question a text covers, where it stands there first."""
    if not text or not is_span(text, question):
        return [False] * len(words)
    wanted = [normalized(word.text) for word in words_of(text)]
    own = [normalized(word.text) for word in words]
    for start in range(len(own) - len(wanted) + 1):
        if own[start : start + len(wanted)] == wanted:
            return [start <= at < start + len(wanted) for at in range(len(own))]
    return [False] * len(words)


def _best_run(
    words: Sequence[Word], scores: NDArray[Any], free: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the run of free words with the highest sum of log-odds, by its first and last word.

    A run does not go on behind a break such as a full stop. It has at least one word.
    """
    best, found = -np.inf, None
    total, start = 0.0, 0
    for at, (word, score) in enumerate(zip(words, scores, strict=True)):
        if not free[at]:
            total = 0.0
            continue
        if total <= 0 or word.after_break:
            total, start = 0.0, at
        total += float(score)
        if total > best:
            best, found = total, (start, at)
    return found
