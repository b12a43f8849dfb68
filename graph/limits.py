"""The budgets of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from langgraph.types import RetryPolicy

from casewright.errors import InputError
from casewright.planner import MAX_STEPS

#: The budgets that are numbers: a request may set each by its name.
_NUMBERS = ("steps", "step_seconds", "deadline", "concurrency", "rows", "characters")
#: Those that need not be whole.
_SECONDS = ("step_seconds", "deadline")


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of one run.

    Attributes:
        step_seconds: Most time for one step, all its attempts included; its clock starts when its
            inputs are there and a place to run is free.
        deadline: Most seconds of the whole run, without pauses for replies: then it ends with an
            answer of what is there, which says what is missing. Unlimited by default. A run that is
            resumed in another process begins its present node's share anew.
        concurrency: Most steps that run at the same time.
        rows: Most results that are kept of a step.
        characters: Longest text that is kept in a result; longer ones are cut.
        retry: Attempts, waits between them in seconds, and the errors that are worth another one.

    Raises:
        InputError: A budget is not positive.
    """

    steps: int = MAX_STEPS
    step_seconds: float = 20.0
    deadline: float = inf
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

    def within(self, request: Limits | Mapping[str, float] | None) -> Limits:
        """Return the budgets of one request: of each, the smaller of this one and the request's.

        These are the operator's: a request can lower them, and never raise them.

        Args:
            request: Some budgets by their names; the others stay. Or ``Limits``, whose defaults
                count too; of its ``retry`` only the attempts do. ``None`` changes nothing.

        Raises:
            InputError: A name is not a budget, or its value is not a number above 0.
        """
        if request is None:
            return self
        attempts = self.retry.max_attempts
        if isinstance(request, Limits):
            attempts = min(attempts, request.retry.max_attempts)
            values = {name: getattr(request, name) for name in _NUMBERS}
        else:
            values = _checked(request)
        return replace(
            self,
            retry=self.retry._replace(max_attempts=attempts),
            **{name: min(getattr(self, name), value) for name, value in values.items()},
        )


def _checked(request: Any) -> dict[str, Any]:
    if not isinstance(request, Mapping):
        raise InputError(
            f"The limits of a request are {type(request).__name__}. Give Limits, or some of "
            f"{', '.join(_NUMBERS)} by name, such as {{'step_seconds': 5}}."
        )
    for name, value in request.items():
        if name not in _NUMBERS:
            raise InputError(
                f"A request asks for the limit {name!r}. Limits of a request are "
                f"{', '.join(_NUMBERS)}."
            )
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        valid = name in _SECONDS or isinstance(value, int)
        if not number or not valid or not isfinite(value) or value <= 0:
            raise InputError(
                f"A request asks for {name}={value!r}. Give a "
                f"{'number' if name in _SECONDS else 'whole number'} above 0."
            )
    return dict(request)
