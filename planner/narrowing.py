"""Tool retrieval: reduction of large toolboxes to the tools that a question may need.

A planner reads all tools of a request; the first plan with hundreds of tools takes minutes. Only
the tools with the highest scores are kept. A score has four parts: similarity to the question,
words of the question, parameters that have the name of a field of the request's context, and
similar plan cases that call the tool. A tool scores higher if its fields (parameters and results)
have the same names as fields of the best tools, since it is a likely next step.
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

#: Maximum number of tools of a request; a larger toolbox is narrowed.
MAX_TOOLS = 64
#: Number of tools in a batch; the encoder caches finished batches, even of a cancelled request.
EMBEDDING_BATCH_SIZE = 256
BEST_COUNT = 32  # number of best tools, which raise their neighbours' scores
NEIGHBOUR_WEIGHT = 10.0  # weight of ``_neighbour_scores``
CASE_COUNT = 16  # number of similar plan cases that are retrieved
#: Tools with a field of the same name are neighbours, unless more tools than this have the field,
#: as with "query".
MAX_SHARING_TOOLS = 40
Scores = NDArray[np.float64]


def narrowing(
    planner: Planner,
    toolbox: Toolbox,
    encoder: Encoder | None = None,
    plan_cases: CaseStore | None = None,
) -> Planner:
    """Return a planner that narrows large toolboxes; for a small toolbox, the planner itself.

    Args:
        toolbox: The usual toolbox; its tools are embedded now, not at the first question.
        encoder: Encoder of tools and questions; by default the packaged encoder.
        plan_cases: Plan cases; tools of cases with similar questions score higher.
    """
    if len(toolbox) <= MAX_TOOLS:
        return planner
    wrapper = _NarrowingBatchPlanner if isinstance(planner, BatchPlanner) else NarrowingPlanner
    narrowing_planner = wrapper(planner, encoder, plan_cases)
    narrowing_planner.index(toolbox)
    return narrowing_planner


class NarrowingPlanner:
    """Plans with at most ``MAX_TOOLS`` tools of a toolbox; see ``narrowing``."""

    def __init__(
        self, planner: Planner, encoder: Encoder | None = None, plan_cases: CaseStore | None = None
    ) -> None:
        self._planner = planner
        self._encoder = encoder
        self._plan_cases = plan_cases
        # The cache has room for two toolboxes: the domain's, and perhaps a request's own.
        self.index = lru_cache(maxsize=2)(self._index)
        self.name = planner.name

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan for the narrowed toolbox; the plan is valid for the whole toolbox too."""
        return self._planner.plan(self.narrowed(request))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""
        if len(request.toolbox) > MAX_TOOLS:
            request = await asyncio.to_thread(self.narrowed, request)
        return await self._planner.aplan(request)

    def narrowed(self, request: PlanRequest) -> PlanRequest:
        """Return the request with the tools that its question may need, in the toolbox's order."""
        if len(request.toolbox) <= MAX_TOOLS:
            return request
        index = self.index(request.toolbox)
        scores = index.scores(request, self._case_scores(request.question, index.position_by_name))
        # Finished steps stay in the plan, so their tools stay in the toolbox.
        scores[[index.position_by_name[name] for name in {*request.fixed.tools}]] = np.inf
        # One less than the maximum, since the toolbox adds ``no_evidence``.
        best = np.sort(np.argsort(-scores, kind="stable")[: MAX_TOOLS - 1])
        return replace(request, toolbox=Toolbox(index.tools[position] for position in best))

    def _index(self, toolbox: Toolbox) -> _Index:
        tools = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
        return _Index(tools, self._encoder or default_encoder())

    def _case_scores(self, question: str, position_by_name: dict[str, int]) -> Scores:
        """Return for each tool the relevance of the most similar case with the tool, or 0."""
        scores = np.zeros(len(position_by_name))
        hits = self._plan_cases.search(question, CASE_COUNT) if self._plan_cases is not None else []
        for hit in hits:
            for name in hit.case.metadata.get("tools", ()):
                if (position := position_by_name.get(name)) is not None:
                    scores[position] = max(scores[position], hit.relevance)
        return scores


class _NarrowingBatchPlanner(NarrowingPlanner):
    _planner: BatchPlanner

    @property
    def batch(self) -> int:
        return self._planner.batch

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        return self._planner.plan_many([self.narrowed(request) for request in requests])


class _Index:
    """Search index of tools; ``position_by_name`` maps a tool's name to its index in ``tools``."""

    def __init__(self, tools: list[ToolSpec], encoder: Encoder) -> None:
        self.tools = tools
        self.position_by_name = {tool.name: position for position, tool in enumerate(tools)}
        self._encoder = encoder
        self._vectors = self._embed([_summary(tool) for tool in tools])
        self._positions_by_word = _inverted_index([set(_words(_all_text(tool))) for tool in tools])
        parameter_names = [{p.name for p in tool.parameters} for tool in tools]
        self._positions_by_parameter = _inverted_index(parameter_names)
        self._positions_by_field = _inverted_index([set(_field_names(tool)) for tool in tools])

    def scores(self, request: PlanRequest, case_scores: Scores) -> Scores:
        """Return each tool's score for a request and the conversation's previous question."""
        questions = [request.question, *(turn["question"] for turn in request.history[-1:])]
        vectors = self._encoder.embed(questions)
        similarities = (self._vectors @ vectors.T).max(axis=1)
        scores = 2 * similarities + self._word_scores(" ".join(questions)) + case_scores
        for name, value in request.context.items():
            positions = self._positions_by_parameter.get(name, []) if value is not None else []
            scores[positions] += min(1.0, self._rarity(len(positions)) / 5)
        total: Scores = scores + NEIGHBOUR_WEIGHT * self._neighbour_scores(scores)
        return total

    def _embed(self, texts: list[str]) -> NDArray[np.float64]:
        with show_progress("Reading the tools", len(texts), "tools") as advance:
            vectors = []
            for start in range(0, len(texts), EMBEDDING_BATCH_SIZE):
                batch = texts[start : start + EMBEDDING_BATCH_SIZE]
                vectors.append(self._encoder.embed(batch))
                advance(len(batch))
        return np.concatenate(vectors).astype(np.float64)

    def _word_scores(self, question: str) -> Scores:
        """Return for each tool the summed rarity of words shared with the question, at most 1."""
        scores = np.zeros(len(self.tools))
        for word in set(_words(question)):
            positions = self._positions_by_word.get(word, [])
            scores[positions] += self._rarity(len(positions))
        return scores / (scores.max() or 1.0)

    def _neighbour_scores(self, scores: Scores) -> Scores:
        """Return for each tool the weighted mean lead of the tools that share a field with it.

        A best tool's lead is its score minus the highest score of a tool that is not a best tool.
        """
        best_and_next = np.argsort(-scores, kind="stable")[: BEST_COUNT + 1]
        leads = np.zeros(len(scores))
        leads[best_and_next] = scores[best_and_next] - scores[best_and_next[-1]]
        sums, weights = np.zeros(len(scores)), np.zeros(len(scores))
        for positions in self._positions_by_field.values():
            size = len(positions)
            if 1 < size <= MAX_SHARING_TOOLS:
                sums[positions] += (leads[positions].sum() - leads[positions]) / size
                weights[positions] += (size - 1) / size
        mean: Scores = sums / np.maximum(weights, 1e-9)
        return mean

    def _rarity(self, count: int) -> float:
        """Return the log inverse frequency of a word or parameter that ``count`` tools have."""
        return math.log(1 + len(self.tools) / max(1, count))


def _field_names(tool: ToolSpec) -> list[str]:
    return [*tool.results, *(parameter.name for parameter in tool.parameters)]


def _summary(tool: ToolSpec) -> str:
    query = tool.example.query if tool.example else ""
    return f"{_separated_words(tool.name)}. {tool.description} {query}"


def _all_text(tool: ToolSpec) -> str:
    texts = [_summary(tool), *map(_separated_words, _field_names(tool))]
    for parameter in tool.parameters:
        texts += [parameter.description, *map(str, parameter.choices)]
    return " ".join(texts)


def _separated_words(name: str) -> str:
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", name)


def _words(text: str) -> list[str]:
    # Five-letter prefixes, so that "votes" matches "vote".
    return [word[:5] for word in re.findall(r"\w{3,}", text.lower())]


def _inverted_index(keys_by_tool: Sequence[set[str]]) -> dict[str, list[int]]:
    """Return for each key the indices of the tools that have the key."""
    index: dict[str, list[int]] = defaultdict(list)
    for position, keys in enumerate(keys_by_tool):
        for key in sorted(keys):
            index[key].append(position)
    return dict(index)
