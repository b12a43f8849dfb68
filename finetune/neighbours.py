"""Draws plan cases for training prompts: queries similar to the question, and random queries."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.plan_shape import plan_class
from casewright.planner import AnnotatedQuery, PlanRequest
from casewright.planner.plan import context_fields
from casewright.planner.spans import WORD_RUNS, normalized
from casewright.stores import Encoder
from casewright.tools import Toolbox, ToolSpec

#: Maximum number of similar queries from which plan cases are drawn.
MAX_NEIGHBOURS = 64
#: Maximum number of rows of the similarity matrix in memory.
BLOCK_ROWS = 1024


@lru_cache(maxsize=1 << 16)
def question_key(text: str) -> str:
    """Return a question's words in lower case; repetitions of a question have the same key."""
    return " ".join(WORD_RUNS.findall(normalized(text)))


def present_fields(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a context that have a value."""
    return {field: value for field, value in context.items() if value is not None}


class _Need(NamedTuple):
    """The class of a plan, and the tools and context fields that the plan needs.

    A random draw checks needs instead of queries, since there are far fewer needs.
    """

    plan_class: str
    tools: frozenset[str]
    fields: frozenset[str]


class Neighbours:
    """Draws a question's plan cases from ``queries``, which are usually the training queries.

    Queries with a changed toolbox are never drawn, since their plans are made for that toolbox.
    Queries with a history are never drawn, since their plans are wrong without the history.
    """

    def __init__(self, queries: Sequence[AnnotatedQuery], encoder: Encoder) -> None:
        self._cases = [
            query
            for query in queries
            if not (query.record.tools_extra or query.record.tools_removed or query.record.history)
        ]
        self._encoder = encoder
        self._question_keys = [question_key(query.query) for query in self._cases]
        self._numbers_by_key: dict[str, list[int]] = defaultdict(list)
        for number, key in enumerate(self._question_keys):
            self._numbers_by_key[key].append(number)
        self._needs = [
            _Need(plan_class(q.plan), frozenset(q.plan.tools), frozenset(context_fields(q.plan)))
            for q in self._cases
        ]
        self._numbers_by_need: dict[_Need, list[int]] = defaultdict(list)
        for number, need in enumerate(self._needs):
            self._numbers_by_need[need].append(number)
        texts = list(dict.fromkeys(query.query for query in queries))
        row_by_text = {text: row for row, text in enumerate(texts)}
        vectors = unit_embeddings(encoder, texts)
        self._vectors = vectors[[row_by_text[query.query] for query in self._cases]]
        self._nearest_by_text = dict(zip(texts, self._search(texts, vectors), strict=True))

    def plan_cases(
        self, request: PlanRequest, count: int, random_share: float, rng: random.Random
    ) -> list[AnnotatedQuery]:
        """Return plan cases whose plans a request can run: similar queries, then random queries.

        No plan case has the request's own question.

        Args:
            request: A request whose tools have their original names.
            count: Maximum number of plan cases.
            random_share: The probability that a plan case is drawn at random.
        """
        if not count:
            return []
        tools = set(request.toolbox.names)
        fields = present_fields(request.context).keys()

        def is_usable(need: _Need) -> bool:
            return need.tools <= tools and need.fields <= fields

        question = request.question
        if (nearest := self._nearest_by_text.get(question)) is None:
            nearest = next(self._search([question], unit_embeddings(self._encoder, [question])))
        usable_numbers = (int(number) for number in nearest if is_usable(self._needs[number]))
        similar_count = sum(rng.random() >= random_share for _ in range(count))
        # Drawing from twice as many varies the neighbours; a model could memorise fixed ones.
        similar = list(islice(usable_numbers, 2 * similar_count + 1))
        indices = sorted(rng.sample(range(len(similar)), min(similar_count, len(similar))))
        picked = [similar[index] for index in indices]
        while len(picked) < count:
            number = self._draw_number(is_usable, {question_key(question)}, picked, rng)
            if number is None:
                break
            picked.append(number)
        return [self._cases[number] for number in picked]

    def draw_example(
        self, tool: str, toolbox: Toolbox, avoided_keys: Container[str], rng: random.Random
    ) -> AnnotatedQuery | None:
        """Return a random query whose plan has the class ``tool`` and fits a toolbox, or ``None``.

        The tools have their original names. Questions with one of ``avoided_keys`` are left out.
        """
        tools = set(toolbox.names)

        def is_usable(need: _Need) -> bool:
            return need.plan_class == tool and need.tools <= tools

        number = self._draw_number(is_usable, avoided_keys, (), rng)
        return None if number is None else self._cases[number]

    def _draw_number(
        self,
        is_usable: Callable[[_Need], bool],
        avoided_keys: Container[str],
        picked: Container[int],
        rng: random.Random,
    ) -> int | None:
        """Return the index in ``_cases`` of a random usable query, neither picked nor avoided."""
        groups = [numbers for need, numbers in self._numbers_by_need.items() if is_usable(need)]
        # Ten draws fail only if nearly all usable queries are already picked or avoided.
        for _ in range(10 if groups else 0):
            (numbers,) = rng.choices(groups, weights=[*map(len, groups)])
            number = rng.choice(numbers)
            if number not in picked and self._question_keys[number] not in avoided_keys:
                return number
        return None

    def _search(
        self, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> Iterator[NDArray[np.int32]]:
        """Yield each text's nearest plan cases (numbers, nearest first), except the text itself."""
        count = min(MAX_NEIGHBOURS, len(self._cases))
        if not count:
            yield from (np.zeros(0, np.int32) for _ in texts)
            return
        for start in range(0, len(texts), BLOCK_ROWS):
            similarity = vectors[start : start + BLOCK_ROWS] @ self._vectors.T
            for row, text in zip(similarity, texts[start : start + BLOCK_ROWS], strict=True):
                row[self._numbers_by_key.get(question_key(text), [])] = -np.inf
                best = np.argpartition(-row, count - 1)[:count]
                best = best[np.isfinite(row[best])]
                # Similarities are rounded, since equal ones may differ in their last digits.
                yield best[np.lexsort((best, -np.round(row[best], 5)))].astype(np.int32)


def tool_embeddings(encoder: Encoder, tools: Iterable[ToolSpec]) -> NDArray[np.float32]:
    """Return unit embeddings (tools, dimension) of the tools' names and descriptions."""
    return unit_embeddings(encoder, [f"{tool.name}: {tool.description}" for tool in tools])


def unit_embeddings(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return embeddings (n, dimension) of texts at unit length; zero vectors stay zero."""
    if not texts:
        return np.zeros((0, 1), np.float32)
    vectors = encoder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
