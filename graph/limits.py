"""The budgets of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from langgraph.types import RetryPolicy

from casewright.errors import InputError
from casewright.planner import MAX_STEPS

#: The budgets that are numbers, which is all that a request may name one by one.
_NUMBERS = ("steps", "step_seconds", "concurrency", "rows", "characters")


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
        for name in _NUMBERS:
            if getattr(self, name) <= 0:
                raise InputError(f"Limits.{name} is {getattr(self, name)}; it must be above 0.")

    def within(self, asked: Limits | Mapping[str, float] | None) -> Limits:
        """Return the budgets of one request: of each, the smaller of this one and what it asks for.

        These are the operator's: a request can lower them, and never raise them.

        Args:
            asked: Some budgets by their names; one that is not named stays as it is here. Or
                ``Limits``, whose defaults count as asked for too; of its ``retry`` only the
                attempts do. ``None`` asks for nothing.

        Raises:
            InputError: A name is no budget, or its value is no number above 0.
        """
        if asked is None:
            return self
        if isinstance(asked, Limits):
            attempts = min(self.retry.max_attempts, asked.retry.max_attempts)
            given = {name: getattr(asked, name) for name in _NUMBERS}
        else:
            attempts, given = self.retry.max_attempts, _checked(asked)
        return replace(
            self,
            retry=self.retry._replace(max_attempts=attempts),
            **{name: min(getattr(self, name), value) for name, value in given.items()},
        )


def _checked(asked: Any) -> dict[str, Any]:
    if not isinstance(asked, Mapping):
        raise InputError(
            f"The limits of a request are {type(asked).__name__}. Give Limits, or some of "
            f"{', '.join(_NUMBERS)} by name, such as {{'step_seconds': 5}}."
        )
    for name, value in asked.items():
        if name not in _NUMBERS:
            raise InputError(
                f"A request asks for the limit {name!r}. Limits of a request are "
                f"{', '.join(_NUMBERS)}."
            )
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        whole = name == "step_seconds" or isinstance(value, int)
        if not number or not whole or not isfinite(value) or value <= 0:
            raise InputError(
                f"A request asks for {name}={value!r}. Give a "
                f"{'number' if name == 'step_seconds' else 'whole number'} above 0."
            )
    return dict(asked)
