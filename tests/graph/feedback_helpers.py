"""Helpers of the tests of the feedback loop: a small store, judges, and runs of a loop."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import CaseSchema, CaseStore, text_facet
from casewright.stores.feedback import JudgeRequest, Verdicts
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder

QUESTION = "how does the river flow through the old town"
WORDS = ["river", "town", "old", "flow", "bridge", "mill", "stone", "water", "bank", "fish", "sea"]
#: Each text shares words with the question and with the next text.
TEXTS = [
    f"{' '.join(WORDS[i % len(WORDS)] for i in (n, n + 1, 2 * n + 1, 3 * n))} number {n}"
    for n in range(24)
]


def note_store(texts: Sequence[str] = TEXTS, *, name: str = "notes", **options: Any) -> CaseStore:
    schema = CaseSchema(name, (text_facet("question", HashingEncoder()),), **options)
    store = CaseStore(schema)
    store.add([note(text, metadata={"even": n % 2 == 0}) for n, text in enumerate(texts)])
    return store


def no_verdicts(request: JudgeRequest) -> Any:
    return Verdicts(frozenset())


def all_relevant(request: JudgeRequest) -> Any:
    return Verdicts(frozenset(case.id for case in request.candidates))


class FakeJudge:
    """A judge whose verdicts a function returns; it records its requests."""

    name = "scripted"

    def __init__(self, script: Callable[[JudgeRequest], Any] = all_relevant) -> None:
        self.script = script
        self.requests: list[JudgeRequest] = []

    def judge(self, request: JudgeRequest) -> Any:
        self.requests.append(request)
        return self.script(request)

    @property
    def judged_ids(self) -> list[str]:
        """Return the ids of all judged candidates, in order."""
        return [case.id for request in self.requests for case in request.candidates]


class AsyncFakeJudge(FakeJudge):
    """A fake judge whose ``ajudge`` is called when the loop runs asynchronously."""

    async def ajudge(self, request: JudgeRequest) -> Any:
        self.requests.append(request)
        answer = self.script(request)
        return await answer if asyncio.iscoroutine(answer) else answer


def run_loop(mode: str, *args: Any, **options: Any) -> FeedbackResult:
    """Build a loop, run it on the question, and return its result."""
    limits = FeedbackLimits(**{"first": 4, "more": 3, "seconds": 10.0, **options.pop("limits", {})})
    return run_graph(mode, build_feedback(*args, limits=limits, **options))


def run_graph(mode: str, graph: Any, config: Any = None, **inputs: Any) -> FeedbackResult:
    state = {"question": QUESTION, **inputs}
    with warnings.catch_warnings():
        # A coroutine that is never awaited causes only a warning, which must fail the test.
        warnings.simplefilter("error", RuntimeWarning)
        if mode == "sync":
            return FeedbackResult.from_state(graph.invoke(state, config))
        return FeedbackResult.from_state(asyncio.run(graph.ainvoke(state, config)))


def round_totals(result: FeedbackResult) -> list[int]:
    return [round_["total"] for round_ in result.rounds]


def hit_ids(result: FeedbackResult) -> list[str]:
    return [hit["id"] for hit in result.hits]
