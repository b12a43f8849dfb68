"""Tool retrieval: reduction of large toolboxes to the tools that a question may need.

A planner reads every tool of a request. With hundreds of tools the first plan takes minutes, and
most tools have nothing to do with the question. So only the nearest tools are kept. Their scores
combine embeddings and words of the descriptions, the page's fields, and plan cases; neighbours,
which share fields with the best tools, score too, as likely next steps.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casewright.planner.request import BatchPlanner, Planner, PlanRequest, PlanResult
from casewright.stores import CaseStore, Encoder, default_encoder
from casewright.stores.progress import show_progress
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

#: Maximal number of tools of a request; a larger toolbox is narrowed.
MOST = 64
#: Batch of tools that are embedded and cached together: the first request may be cancelled.
TOGETHER = 256
#: Number of best tools whose neighbours score; the neighbours' weight; number of plan cases.
SEEDS, NEIGHBOURS, CASES = 32, 10.0, 16
#: Maximal number of tools linked by a field; more tools share only fields such as query or name.
COMMON = 40
Scores = NDArray[np.float64]


def narrowing(
    planner: Planner,
    toolbox: Toolbox,
    encoder: Encoder | None = None,
    plan_cases: CaseStore | None = None,
) -> Planner:
    """Return a planner that narrows large toolboxes; for a small toolbox, the planner itself.

    Args:
        planner: Plans with the narrowed toolbox.
        toolbox: The usual toolbox, whose tools are embedded now, not at the first question.
        encoder: Encoder of tools and questions; the packaged one by default.
        plan_cases: Plan cases; tools of cases with similar questions score higher.
    """
    if len(toolbox) <= MOST:
        return planner
    kind = _NarrowingBatchPlanner if isinstance(planner, BatchPlanner) else NarrowingPlanner
    narrowed = kind(planner, encoder, plan_cases)
    narrowed.index(toolbox)
    return narrowed


class NarrowingPlanner:
    """Plans with at most ``MOST`` tools of a toolbox; see ``narrowing``."""

    def __init__(
        self, planner: Planner, encoder: Encoder | None = None, plan_cases: CaseStore | None = None
    ) -> None:
        self._planner = planner
        self._encoder = encoder
        self._plan_cases = plan_cases
        # Few toolboxes are so large: a domain's, and perhaps that of a request.
        self.index = lru_cache(maxsize=2)(self._index)
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan for the narrowed toolbox, which is valid for the whole toolbox too."""
        return self._planner.plan(self.narrowed(request))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        if len(request.toolbox) > MOST:
            request = await asyncio.to_thread(self.narrowed, request)
        return await self._planner.aplan(request)

    def narrowed(self, request: PlanRequest) -> PlanRequest:
        """Return the request with the tools that its question may need, in the toolbox's order."""
        if len(request.toolbox) <= MOST:
            return request
        index = self.index(request.toolbox)
        scores = index.scores(request, self._cases(request.question, index.numbers))
        # Finished steps stay in the plan.
        scores[[index.numbers[name] for name in {*request.fixed.tools}]] = np.inf
        best = np.sort(np.argsort(-scores, kind="stable")[: MOST - 1])
        return replace(request, toolbox=Toolbox(index.tools[number] for number in best))

    def _index(self, toolbox: Toolbox) -> _Index:
        tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
        return _Index(tools, self._encoder or default_encoder())

    def _cases(self, question: str, numbers: dict[str, int]) -> Scores:
        """Return for each tool the relevance of the most similar case whose plan calls it."""
        nearness = np.zeros(len(numbers))
        hits = self._plan_cases.search(question, CASES) if self._plan_cases is not None else []
        for hit in hits:
            for name in hit.case.metadata.get("tools", ()):
                if (number := numbers.get(name)) is not None:
                    nearness[number] = max(nearness[number], hit.relevance)
        return nearness


class _NarrowingBatchPlanner(NarrowingPlanner):
    _planner: BatchPlanner

    @property
    def batch(self) -> int:
        return self._planner.batch

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        return self._planner.plan_many([self.narrowed(request) for request in requests])


class _Index:
    """Search index of a toolbox's tools; ``numbers`` maps names to indices."""

    def __init__(self, tools: list[ToolSpec], encoder: Encoder) -> None:
        self.tools = tools
        self.numbers = {tool.name: number for number, tool in enumerate(tools)}
        self._encoder = encoder
        self._vectors = self._embedded([_card(tool) for tool in tools])
        self._words = _by_key([set(_words(_all_text(tool))) for tool in tools])
        self._parameters = _by_key([{p.name for p in tool.parameters} for tool in tools])
        self._fields = _by_key([set(_fields_of(tool)) for tool in tools])

    def scores(self, request: PlanRequest, of_cases: Scores) -> Scores:
        questions = [request.question, *(turn["question"] for turn in request.history[-1:])]
        vectors = self._encoder.embed(questions)
        near = (self._vectors @ vectors.T).max(axis=1)
        base = 2 * near + self._shared_words(" ".join(questions)) + of_cases
        for name, value in request.context.items():
            holders = self._parameters.get(name, []) if value is not None else []
            base[holders] += min(1.0, self._rarity(len(holders)) / 5)
        total: Scores = base + NEIGHBOURS * self._from_neighbours(base)
        return total

    def _embedded(self, texts: list[str]) -> Scores:
        parts = [texts[at : at + TOGETHER] for at in range(0, len(texts), TOGETHER)]
        with show_progress("Reading the tools", len(texts), "tools") as advance:
            vectors = []
            for part in parts:
                vectors.append(self._encoder.embed(part))
                advance(len(part))
        return np.concatenate(vectors).astype(np.float64)

    def _shared_words(self, question: str) -> Scores:
        shared = np.zeros(len(self.tools))
        for word in set(_words(question)):
            holders = self._words.get(word, [])
            shared[holders] += self._rarity(len(holders))
        return shared / (shared.max() or 1.0)

    def _from_neighbours(self, base: Scores) -> Scores:
        """Return the mean excess score of the best tools that share fields with each tool."""
        best = np.argsort(-base, kind="stable")[: SEEDS + 1]
        sums, shares = np.zeros(len(base)), np.zeros(len(base))
        above = dict(zip(best.tolist(), (base[best] - base[best[-1]]).tolist(), strict=True))
        for holders in self._fields.values():
            size = len(holders)
            if 1 < size <= COMMON:
                total = sum(above.get(number, 0.0) for number in holders) / size
                sums[holders] += total - np.array([above.get(n, 0.0) for n in holders]) / size
                shares[holders] += (size - 1) / size
        mean: Scores = sums / np.maximum(shares, 1e-9)
        return mean

    def _rarity(self, holders: int) -> float:
        return math.log(1 + len(self.tools) / max(1, holders))


def _fields_of(tool: ToolSpec) -> list[str]:
    return [*tool.results, *(parameter.name for parameter in tool.parameters)]


def _card(tool: ToolSpec) -> str:
    return f"{_spaced(tool.name)}. {tool.description} {tool.example.query if tool.example else ''}"


def _all_text(tool: ToolSpec) -> str:
    parts = [_card(tool), *map(_spaced, _fields_of(tool))]
    for parameter in tool.parameters:
        parts += [parameter.description, *map(str, parameter.choices)]
    return " ".join(parts)


def _spaced(name: str) -> str:
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", name)


def _words(text: str) -> list[str]:
    # Prefixes of words, so that "votes" matches "vote".
    return [word[:5] for word in re.findall(r"\w{3,}", text.lower())]


def _by_key(of_tools: Sequence[set[str]]) -> dict[str, list[int]]:
    holders: dict[str, list[int]] = defaultdict(list)
    for number, keys in enumerate(of_tools):
        for key in sorted(keys):
            holders[key].append(number)
    return dict(holders)
