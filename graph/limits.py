"""The budgets of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from langgraph.types import RetryPolicy

from casewright.errors import InputError
from casewright.planner import MAX_STEPS
from casewright.planner.price import Price

#: The budgets that are numbers: a request may set each by its name.
_NUMBERS = (
    *("steps", "step_seconds", "deadline", "concurrency", "rows", "characters"),
    *("calls", "seconds", "cost", "tokens"),
)
#: Those of them that need not be whole.
_FRACTIONS = ("step_seconds", "deadline", "seconds", "cost")
#: The budgets that bound the price of a plan.
BUDGET = ("calls", "seconds", "cost", "tokens", "tool_calls")


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
        calls: Most calls of tools, further attempts included.
        seconds: Longest critical path of a plan, by the tools' latencies.
        cost, tokens: Most that the calls may cost and spend, by the tools' declarations.
        tool_calls: Most calls of single tools, further attempts included, by the tools' names.

    What a plan has beyond the last five is left out of it, from its end.

    Raises:
        InputError: A budget is not positive, or one of ``tool_calls`` is no whole number from 0 on.
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

    calls: float = inf
    seconds: float = inf
    cost: float = inf
    tokens: float = inf
    tool_calls: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check_tool_calls(self.tool_calls)
        for name in _NUMBERS:
            if not getattr(self, name) > 0:
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
            values = {name: getattr(request, name) for name in (*_NUMBERS, "tool_calls")}
        else:
            values = _checked(request)
        tool_calls = dict(self.tool_calls)
        for tool, most in values.pop("tool_calls", {}).items():
            tool_calls[tool] = min(most, tool_calls.get(tool, most))
        return replace(
            self,
            retry=self.retry._replace(max_attempts=attempts),
            tool_calls=tool_calls,
            **{name: min(getattr(self, name), value) for name, value in values.items()},
        )

    def budget(self) -> dict[str, Any]:
        """Return the bounds of a plan's price that are set, JSON-plain, for ``within``."""
        numbers = {name: getattr(self, name) for name in BUDGET[:-1]}
        bounds: dict[str, Any] = {name: value for name, value in numbers.items() if value < inf}
        return {**bounds, **({"tool_calls": dict(self.tool_calls)} if self.tool_calls else {})}

    def excess(self, price: Price) -> str:
        """Return what of a price is beyond these budgets, in words; empty if nothing is."""
        totals = {"calls": sum(price.calls.values())} | {
            name: getattr(price, name) or 0 for name in ("seconds", "cost", "tokens")
        }
        bounds = [(name, total, getattr(self, name)) for name, total in totals.items()]
        for tool, most in self.tool_calls.items():
            bounds.append((f"calls of {tool}", price.calls.get(tool, 0), most))
        # Sums of floating-point numbers: three calls at 0.1 cost 0.3.
        beyond = (
            f"{name} {total:g}, at most {most:g}"
            for name, total, most in bounds
            if total > most * (1 + 1e-9)
        )
        return next(beyond, "")


def _check_tool_calls(value: Any) -> None:
    numbers = value.values() if isinstance(value, Mapping) else [None]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
        raise InputError(
            f"The budget tool_calls is {value!r:.80}. Give whole numbers by the tools' names, such "
            'as {"search": 2}.'
        )


def _checked(request: Any) -> dict[str, Any]:
    if not isinstance(request, Mapping):
        raise InputError(
            f"The limits of a request are {type(request).__name__}. Give Limits, or some of "
            f"{', '.join(_NUMBERS)} by name, such as {{'step_seconds': 5}}."
        )
    for name, value in request.items():
        if name == "tool_calls":
            _check_tool_calls(value)
            continue
        if name not in _NUMBERS:
            raise InputError(
                f"A request asks for the limit {name!r}. Limits of a request are "
                f"{', '.join(_NUMBERS)}, tool_calls."
            )
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        valid = name in _FRACTIONS or isinstance(value, int)
        if not number or not valid or not isfinite(value) or value <= 0:
            raise InputError(
                f"A request asks for {name}={value!r}. Give a "
                f"{'number' if name in _FRACTIONS else 'whole number'} above 0."
            )
    return dict(request)
