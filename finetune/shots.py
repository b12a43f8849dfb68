"""Plan cases for training prompts: a question's nearest queries, and random other queries."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.plan_shape import plan_class
from casewright.planner import AnnotatedQuery, PlanRequest
from casewright.planner.plan import context_fields
from casewright.planner.spans import RUNS, normalized
from casewright.stores import Encoder
from casewright.tools import Toolbox

#: Number of stored neighbours of each query.
NEAREST = 64
#: Number of rows of a similarity matrix that are in memory at once.
BLOCK = 1024


@lru_cache(maxsize=1 << 16)
def plain(text: str) -> str:
    """Return the case-folded words of a question; questions with equal words count as the same."""
    return " ".join(RUNS.findall(normalized(text)))


@dataclass(frozen=True, slots=True)
class _Need:
    """Requirements of a plan on its toolbox and context, which many queries share.

    Attributes:
        plan_class: The plan's class, which does not limit where the plan can run.
        fields: The plan's context fields.
    """

    plan_class: str
    tools: frozenset[str]
    fields: frozenset[str]


class Neighbours:
    """Finds the plan cases to show with a question: similar queries, and random queries.

    Two kinds of queries are shown with no other question: those whose record changes the toolbox,
    since their plans are for other tools, and those with a history, since their plans are wrong
    without it.

    Args:
        queries: Usually the training queries; all plan cases come from them.
    """

    def __init__(
        self, queries: Sequence[AnnotatedQuery], encoder: Encoder, *, nearest: int = NEAREST
    ) -> None:
        self._cases = [
            query
            for query in queries
            if not (query.record.tools_extra or query.record.tools_removed or query.record.history)
        ]
        self._encoder = encoder
        self._nearest = nearest
        self._plain = [plain(query.query) for query in self._cases]
        self._same: dict[str, list[int]] = defaultdict(list)
        for number, words in enumerate(self._plain):
            self._same[words].append(number)
        self._needs = [
            _Need(plan_class(q.plan), frozenset(q.plan.tools), frozenset(context_fields(q.plan)))
            for q in self._cases
        ]
        self._groups: dict[_Need, list[int]] = defaultdict(list)
        for number, need in enumerate(self._needs):
            self._groups[need].append(number)
        rows = {text: row for row, text in enumerate(dict.fromkeys(q.query for q in queries))}
        vectors = units(encoder, list(rows))
        self._vectors = vectors[[rows[query.query] for query in self._cases]]
        self._near = dict(zip(rows, self._search(list(rows), vectors), strict=True))

    def near(self, question: str) -> list[AnnotatedQuery]:
        """Return the nearest queries, the best first, without queries of the question's words."""
        return [self._cases[number] for number in self._numbers(question)]

    def shots(
        self, request: PlanRequest, count: int, random_share: float, rng: random.Random
    ) -> list[AnnotatedQuery]:
        """Draw plan cases that a request can run, neighbours of its question first.

        No plan case has the words of the question.

        Args:
            request: Its tools have their original names.
            count: Maximum number of plan cases.
            random_share: The probability that a plan case is a random query.
        """
        if not count:
            return []
        tools = set(request.toolbox.names)
        fields = {field for field, value in request.context.items() if value is not None}

        def usable(need: _Need) -> bool:
            return need.tools <= tools and need.fields <= fields

        numbers = self._numbers(request.question)
        usable_numbers = (number for number in numbers if usable(self._needs[number]))
        alike = sum(rng.random() >= random_share for _ in range(count))
        # Drawn from twice as many: a model could learn fixed neighbours by heart.
        near = list(islice(usable_numbers, 2 * alike + 1))
        indices = sorted(rng.sample(range(len(near)), min(alike, len(near))))
        picks = [int(near[index]) for index in indices]
        while len(picks) < count:
            number = self._draw(usable, {plain(request.question)}, picks, rng)
            if number is None:
                break
            picks.append(number)
        return [self._cases[number] for number in picks]

    def example(
        self, tool: str, toolbox: Toolbox, avoid: Container[str], rng: random.Random
    ) -> AnnotatedQuery | None:
        """Draw a query of the class ``tool`` whose plan the tools of a toolbox can run.

        Args:
            toolbox: Its tools have their original names.
            avoid: The questions not to draw, as ``plain`` texts.
        """
        tools = set(toolbox.names)

        def usable(need: _Need) -> bool:
            return need.plan_class == tool and need.tools <= tools

        number = self._draw(usable, avoid, (), rng)
        return None if number is None else self._cases[number]

    def _draw(
        self,
        usable: Callable[[_Need], bool],
        avoid: Container[str],
        picked: Container[int],
        rng: random.Random,
    ) -> int | None:
        groups = [members for need, members in self._groups.items() if usable(need)]
        if not groups:
            return None
        for _ in range(10):
            (members,) = rng.choices(groups, weights=[len(members) for members in groups])
            number = rng.choice(members)
            if number not in picked and self._plain[number] not in avoid:
                return number
        # Nearly all usable queries are picked, or have a question to avoid.
        return None

    def _numbers(self, question: str) -> NDArray[np.int32]:
        result = self._near.get(question)
        if result is None:
            result = next(self._search([question], units(self._encoder, [question])))
        return result

    def _search(
        self, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> Iterator[NDArray[np.int32]]:
        """Yield the numbers of each text's neighbours, at most ``nearest``, the best first."""
        keep = min(self._nearest, len(self._cases))
        if not keep:
            yield from (np.zeros(0, np.int32) for _ in texts)
            return
        for start in range(0, len(texts), BLOCK):
            similarity = vectors[start : start + BLOCK] @ self._vectors.T
            for row, text in zip(similarity, texts[start : start + BLOCK], strict=True):
                row[self._same.get(plain(text), [])] = -np.inf
                best = np.argpartition(-row, keep - 1)[:keep]
                best = best[np.isfinite(row[best])]
                # Rounded, since equal similarities may differ in their last digits.
                yield best[np.lexsort((best, -np.round(row[best], 5)))].astype(np.int32)


def units(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return embeddings of texts as unit vectors (n, dimension); zero vectors stay zero."""
    if not texts:
        return np.zeros((0, 1), np.float32)
    vectors = encoder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
