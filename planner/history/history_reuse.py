"""Reuse of plan cases for a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casewright.errors import InputError
from casewright.planner.history import rebinding
from casewright.planner.history.follow_up import FollowUp
from casewright.planner.history.turns import Turn, understood
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reading, Reuse, valid, valid_readings

#: Turns that are looked back on.
TURNS = 4


class HistoryReuse:
    """Plans for follow-ups by another way to reuse plan cases.

    Args:
        reuse: The way for questions that stand alone.
    """

    def __init__(self, reuse: Reuse) -> None:
        self._reuse = reuse

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first; a follow-up's have no confidence."""
        if request.history and rebinding.page_fields(request.toolbox):
            turns = self._turns(request)
            if turns:
                for plan, _ in FollowUp(self._reuse, request, turns).plans():
                    yield Reading(plan)
        yield from self._reuse.readings(request)

    def _turns(self, request: PlanRequest) -> list[Turn]:
        turns: list[Turn] = []
        for turn in request.history[-TURNS:]:
            try:
                alone = PlanRequest(
                    turn["question"],
                    request.toolbox,
                    request.context,
                    max_steps=request.max_steps,
                )
            except InputError:
                # Nobody checked what was asked before; of such a turn nothing is known.
                continue
            plan, question = self._plan(alone, turns)
            if plan is not None:
                turns.append(understood(question, turn["answer"], plan, request.toolbox))
        return turns

    def _plan(self, request: PlanRequest, turns: Sequence[Turn]) -> tuple[Plan | None, str]:
        if turns:
            for plan, question in FollowUp(self._reuse, request, turns).plans():
                if valid(plan, request):
                    return plan, question
        alone = next(valid_readings(self._reuse, request), None)
        return None if alone is None else alone.plan, request.question
