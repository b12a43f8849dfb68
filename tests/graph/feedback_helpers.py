"""Helpers of the tests of the feedback loop: a small store, judges, and a way to run a loop."""

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
#: Each has words of the question, and some of the one after it.
WORDS = ["river", "town", "old", "flow", "bridge", "mill", "stone", "water", "bank", "fish", "sea"]
TEXTS = [
    f"{' '.join(WORDS[i % len(WORDS)] for i in (n, n + 1, 2 * n + 1, 3 * n))} number {n}"
    for n in range(24)
]


def note_store(texts: Sequence[str] = TEXTS, *, name: str = "notes", **more: Any) -> CaseStore:
    schema = CaseSchema(name, (text_facet("question", HashingEncoder()),), **more)
    store = CaseStore(schema)
    store.add([note(text, metadata={"even": n % 2 == 0}) for n, text in enumerate(texts)])
    return store


def no_verdicts(request: JudgeRequest) -> Any:
    return Verdicts(frozenset())


def all_relevant(request: JudgeRequest) -> Any:
    return Verdicts(frozenset(one.id for one in request.candidates))


class Scripted:
    """A judge that answers by a function, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, script: Callable[[JudgeRequest], Any] = all_relevant) -> None:
        self.script = script
        self.asked: list[JudgeRequest] = []

    def judge(self, request: JudgeRequest) -> Any:
        self.asked.append(request)
        return self.script(request)

    @property
    def ids(self) -> list[str]:
        """All that was judged, in order."""
        return [one.id for request in self.asked for one in request.candidates]


class Awaited(Scripted):
    """The same, by ``ajudge`` alone where the loop runs asynchronously."""

    async def ajudge(self, request: JudgeRequest) -> Any:
        self.asked.append(request)
        answer = self.script(request)
        return await answer if asyncio.iscoroutine(answer) else answer


def loop(mode: str, *args: Any, **more: Any) -> FeedbackResult:
    """Build a loop and ask it the question, blocking or not; see ``run``."""
    limits = FeedbackLimits(**{"first": 4, "more": 3, "seconds": 10.0, **more.pop("limits", {})})
    return run(mode, build_feedback(*args, limits=limits, **more))


def run(mode: str, graph: Any, config: Any = None, **given: Any) -> FeedbackResult:
    asked = {"question": QUESTION, **given}
    with warnings.catch_warnings():
        # A coroutine that was made and not awaited is somebody's mistake.
        warnings.simplefilter("error", RuntimeWarning)
        if mode == "sync":
            return FeedbackResult.from_state(graph.invoke(asked, config))
        return FeedbackResult.from_state(asyncio.run(graph.ainvoke(asked, config)))


def total(result: FeedbackResult) -> list[int]:
    return [one["total"] for one in result.rounds]


def ids(result: FeedbackResult) -> list[str]:
    return [hit["id"] for hit in result.hits]
