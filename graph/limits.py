"""The budgets of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from langgraph.types import RetryPolicy

from casewright.errors import InputError
from casewright.planner import MAX_STEPS


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one run may do.

    Attributes:
        steps: Steps of a plan.
        step_seconds: Time for one step, all its attempts included; its clock starts when what it
            refers to is there and a place to run is free.
        concurrency: Steps that run at the same time.
        rows: Results that are kept of a step.
        characters: Longest text that is kept in a result; longer ones are cut.
        retry: Attempts, waits between them in seconds, and which errors are worth another one.

    Raises:
        InputError: A budget is not positive.
    """

    steps: int = MAX_STEPS
    step_seconds: float = 20.0
    concurrency: int = 8
    rows: int = 50
    characters: int = 20_000
    retry: RetryPolicy = field(
        default_factory=lambda: RetryPolicy(max_attempts=2, initial_interval=0.1)
    )

    def __post_init__(self) -> None:
        for name in ("steps", "step_seconds", "concurrency", "rows", "characters"):
            if getattr(self, name) <= 0:
                raise InputError(f"Limits.{name} is {getattr(self, name)}; it must be above 0.")
