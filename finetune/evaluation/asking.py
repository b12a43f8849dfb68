"""Asking a planner every question, whatever becomes of single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from casewright.errors import told
from casewright.planner import Planner, PlanRequest, PlanResult
from casewright.planner.request import BatchPlanner
from casewright.stores.progress import progress_bar

#: Batches of a planner that are asked at once: it puts together questions that go well together.
_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Answered:
    """What a planner made of a question.

    Attributes:
        result: Its plan; ``None`` where it raised.
        error: What it raised, in one line; empty where it did not.
    """

    result: PlanResult | None
    error: str = ""


def ask_all(
    planner: Planner, requests: Sequence[PlanRequest], label: str, *, warm: bool = True
) -> list[Answered]:
    """Return a planner's answer to every request, in order.

    A planner that plans several questions together does so; the time of a plan is then its share.
    What it raises is kept as the answer to the question at hand.

    Args:
        planner: The planner.
        requests: What it is asked.
        label: For the progress bar.
        warm: Ask the first question once before, so that what is loaded at the first use is not in
            the time of a plan.
    """
    if warm and requests:
        with suppress(Exception):
            planner.plan(requests[0])
    answers: list[Answered] = []
    with progress_bar(label, len(requests)) as advance:
        for part in _parts(planner, requests):
            answers += _ask(planner, part)
            advance(len(part))
    return answers


def _parts(planner: Planner, requests: Sequence[PlanRequest]) -> Iterator[Sequence[PlanRequest]]:
    size = _BATCHES * max(1, planner.batch) if isinstance(planner, BatchPlanner) else 1
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


def _ask(planner: Planner, requests: Sequence[PlanRequest]) -> list[Answered]:
    if isinstance(planner, BatchPlanner) and len(requests) > 1:
        # Of a batch that failed, the questions are asked one by one: one of them may be at fault.
        with suppress(Exception):
            results = planner.plan_many(requests)
            if len(results) == len(requests):
                return [Answered(result) for result in results]
    return [_ask_one(planner, request) for request in requests]


def _ask_one(planner: Planner, request: PlanRequest) -> Answered:
    try:
        return Answered(planner.plan(request))
    except Exception as error:  # noqa: BLE001 - a planner of anybody's may raise anything
        return Answered(None, told(error))
