"""Large toolboxes: the tools that a question may need are found first, and planned with.

A planner reads every tool of a request. With hundreds it takes minutes for a first plan and chooses
among tools that have nothing to do with the question. So the nearest are kept: by the meaning of
what they say of themselves, by words, by what the page has, by plan cases, and since the tools of a
plan feed each other, by the tools that those are fed by or feed.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.request import BatchPlanner, Planner, PlanRequest, PlanResult
from casewright.stores import CaseStore, Encoder, default_encoder
from casewright.stores.progress import told_progress
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

#: Tools that are planned with; a toolbox of more is narrowed.
MOST = 64
#: Tools that are embedded together, and kept in the cache: a first request may be given up.
TOGETHER = 256
#: The best by themselves, whose neighbours count; how much; and plan cases that are looked up.
SEEDS, NEIGHBOURS, CASES = 32, 10.0, 16
#: A field of more tools than this links none: a query, a name.
COMMON = 40
Scores = NDArray[np.float64]


def narrowing(
    planner: Planner,
    toolbox: Toolbox,
    encoder: Encoder | None = None,
    plan_cases: CaseStore | None = None,
) -> Planner:
    """Return a planner that narrows a toolbox before it plans, where that is a large one.

    Args:
        planner: What plans.
        toolbox: What it mostly plans with; its tools are read now, and not by the first question.
        encoder: See ``NarrowingPlanner``.
        plan_cases: See ``NarrowingPlanner``.
    """
    if len(toolbox) <= MOST:
        return planner
    kind = _NarrowingBatchPlanner if isinstance(planner, BatchPlanner) else NarrowingPlanner
    narrowed = kind(planner, encoder, plan_cases)
    narrowed.prepare(toolbox)
    return narrowed


class NarrowingPlanner:
    """Plans with at most ``MOST`` tools of a toolbox.

    Args:
        planner: What plans.
        encoder: Of tools and questions; the packaged one by default.
        plan_cases: Whose tools count where their questions are near.
    """

    def __init__(
        self, planner: Planner, encoder: Encoder | None = None, plan_cases: CaseStore | None = None
    ) -> None:
        self._planner = planner
        self._encoder = encoder
        self._plan_cases = plan_cases
        # Few toolboxes are so large: a domain's, and perhaps one of a request's own.
        self._index = lru_cache(maxsize=2)(self._indexed)
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the planner's plan, which is valid for the whole toolbox, too."""
        return self._planner.plan(self.narrowed(request))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        if len(request.toolbox) > MOST:
            request = await asyncio.to_thread(self.narrowed, request)
        return await self._planner.aplan(request)

    def prepare(self, toolbox: Toolbox) -> None:
        """Read the tools of a large toolbox now, and not when the first question is asked."""
        self._index(toolbox)

    def narrowed(self, request: PlanRequest) -> PlanRequest:
        """Return the request with the tools of it that its question may need, in their order."""
        if len(request.toolbox) <= MOST:
            return request
        index = self._index(request.toolbox)
        scores = index.scores(request, self._cases(request.question, index.places))
        best = np.sort(np.argsort(-scores, kind="stable")[: MOST - 1])
        return replace(request, toolbox=Toolbox(index.tools[number] for number in best))

    def _indexed(self, toolbox: Toolbox) -> _Index:
        tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
        return _Index(tools, self._encoder or default_encoder())

    def _cases(self, question: str, places: dict[str, int]) -> Scores:
        """Return for each tool how near the nearest case is whose plan calls it."""
        nearness = np.zeros(len(places))
        hits = self._plan_cases.search(question, CASES) if self._plan_cases is not None else []
        for hit in hits:
            for name in hit.case.metadata.get("tools", ()):
                if (number := places.get(name)) is not None:
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
    """Index of a toolbox, by which tools are found.

    Attributes:
        tools: All but the one that looks nothing up.
        places: Name to place among them.
    """

    def __init__(self, tools: list[ToolSpec], encoder: Encoder) -> None:
        self.tools = tools
        self.places = {tool.name: place for place, tool in enumerate(tools)}
        self._encoder = encoder
        self._vectors = self._embedded([_card(tool) for tool in tools])
        self._words = _by_key([set(_words(_all_text(tool))) for tool in tools])
        self._given = _by_key([{parameter.name for parameter in t.parameters} for t in tools])
        self._fields = _by_key([set(fields_of(tool)) for tool in tools])

    def scores(self, request: PlanRequest, of_cases: Scores) -> Scores:
        """Return how likely each tool is to be needed."""
        questions = [request.question, *(turn["question"] for turn in request.history[-1:])]
        vectors = self._encoder.embed(questions)
        near = (self._vectors @ vectors.T).max(axis=1)
        own = 2 * near + self._shared_words(" ".join(questions)) + of_cases
        for name, value in request.context.items():
            places = self._given.get(name, []) if value is not None else []
            own[places] += min(1.0, self._rarity(len(places)) / 5)
        joined: Scores = own + NEIGHBOURS * self._from_neighbours(own)
        return joined

    def _embedded(self, texts: list[str]) -> Scores:
        parts = [texts[at : at + TOGETHER] for at in range(0, len(texts), TOGETHER)]
        with told_progress("Reading the tools", len(texts), "tools") as advance:
            vectors = []
            for part in parts:
                vectors.append(self._encoder.embed(part))
                advance(len(part))
        return np.concatenate(vectors).astype(np.float64)

    def _shared_words(self, question: str) -> Scores:
        shared = np.zeros(len(self.tools))
        for word in set(_words(question)):
            places = self._words.get(word, [])
            shared[places] += self._rarity(len(places))
        return shared / (shared.max() or 1.0)

    def _from_neighbours(self, own: Scores) -> Scores:
        """Return what the best give to the tools that share fields with them."""
        best = np.argsort(-own, kind="stable")[: SEEDS + 1]
        given, shares = np.zeros(len(own)), np.zeros(len(own))
        above = dict(zip(best.tolist(), (own[best] - own[best[-1]]).tolist(), strict=True))
        for places in self._fields.values():
            if 1 < len(places) <= COMMON:
                total = sum(above.get(number, 0.0) for number in places) / len(places)
                given[places] += total - np.array([above.get(p, 0.0) for p in places]) / len(places)
                shares[places] += (len(places) - 1) / len(places)
        mean: Scores = given / np.maximum(shares, 1e-9)
        return mean

    def _rarity(self, holders: int) -> float:
        return math.log(1 + len(self.tools) / max(1, holders))


def fields_of(tool: ToolSpec) -> list[str]:
    """Return the names by which a tool is fed and feeds others."""
    return [*tool.results, *(parameter.name for parameter in tool.parameters)]


def _card(tool: ToolSpec) -> str:
    return f"{_spaced(tool.name)}. {tool.description} {tool.example.query if tool.example else ''}"


def _all_text(tool: ToolSpec) -> str:
    said: list[Any] = [_card(tool), *map(_spaced, fields_of(tool))]
    for parameter in tool.parameters:
        said += [parameter.description, *parameter.choices]
    return " ".join(map(str, said))


def _spaced(name: str) -> str:
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", name)


def _words(text: str) -> list[str]:
    # Their beginnings: "votes" is "vote".
    return [word[:5] for word in re.findall(r"\w{3,}", text.lower())]


def _by_key(of_tools: Sequence[set[str]]) -> dict[str, list[int]]:
    holders: dict[str, list[int]] = defaultdict(list)
    for number, keys in enumerate(of_tools):
        for key in sorted(keys):
            holders[key].append(number)
    return dict(holders)
