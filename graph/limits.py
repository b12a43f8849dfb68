"""Limits of a run: on its steps, seconds and results, and on its plan's price (the budget)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from langgraph.types import RetryPolicy

from casewright.errors import InputError
from casewright.planner import MAX_STEPS
from casewright.planner.price import Price

_RUN_NUMBERS = ("steps", "step_seconds", "deadline", "concurrency", "rows", "characters")
_BUDGET_NUMBERS = ("calls", "seconds", "cost", "tokens")
#: The limits whose value is a number; a request may set each of them by name.
_NUMERIC = (*_RUN_NUMBERS, *_BUDGET_NUMBERS)
#: The limits that need not be whole numbers.
_FRACTIONAL = ("step_seconds", "deadline", "seconds", "cost")
#: The budget: the limits of the price of a plan.
BUDGET = (*_BUDGET_NUMBERS, "tool_calls")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run.

    Attributes:
        step_seconds: Maximum time of a step, all attempts included, from the moment when its inputs
            are ready and fewer than ``concurrency`` steps run.
        deadline: Maximum seconds of the whole run, without the wait for a person's reply; unlimited
            by default. After the deadline, the answer uses the evidence so far and names what is
            missing. If another process resumes a run, the interrupted node's time starts at 0.
        concurrency: Maximum number of steps that run at the same time.
        rows: Maximum number of results of a step that are kept.
        characters: Maximum length of a text in a result; longer texts are cut.
        retry: Number of attempts, seconds between them, and the errors that are retried.
        calls: Maximum number of tool calls, further attempts included.
        seconds: Maximum seconds of a plan's critical path, computed from the tools' latencies.
        cost: Maximum cost of all calls, computed from the costs that the tools declare.
        tokens: Maximum number of tokens of all calls, computed in the same way.
        tool_calls: Maximum number of calls by tool name, further attempts included.

    ``calls`` to ``tool_calls`` are the budget: steps beyond it are left out of the plan. Raise
    ``InputError`` if a limit is not positive, or a number in ``tool_calls`` is not an integer >= 0.
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
        for name in _NUMERIC:
            if not getattr(self, name) > 0:
                raise InputError(f"Limits.{name} is {getattr(self, name)}; it must be above 0.")

    def within(self, request: Limits | Mapping[str, float] | None) -> Limits:
        """Return these limits, lowered to the request's value where the request's value is lower.

        So a request can lower the operator's limits, but not raise them. Raise ``InputError`` if
        the request names an unknown limit, or a value is not a number above 0.

        Args:
            request: A mapping of limits by name, or ``Limits``. Every field of ``Limits`` applies,
                even a default; of ``retry``, only the attempts do. ``None`` changes nothing.
        """
        if request is None:
            return self
        attempts = self.retry.max_attempts
        if isinstance(request, Limits):
            attempts = min(attempts, request.retry.max_attempts)
            values = {name: getattr(request, name) for name in (*_NUMERIC, "tool_calls")}
        else:
            values = _checked_request(request)
        tool_calls = dict(self.tool_calls)
        for tool, limit in values.pop("tool_calls", {}).items():
            tool_calls[tool] = min(limit, tool_calls.get(tool, limit))
        return replace(
            self,
            retry=self.retry._replace(max_attempts=attempts),
            tool_calls=tool_calls,
            **{name: min(getattr(self, name), value) for name, value in values.items()},
        )

    def budget(self) -> dict[str, Any]:
        """Return those limits of the budget that are set, as JSON that ``within`` accepts."""
        bounds: dict[str, Any] = {name: getattr(self, name) for name in _BUDGET_NUMBERS}
        bounds = {name: bound for name, bound in bounds.items() if bound < inf}
        return bounds | ({"tool_calls": dict(self.tool_calls)} if self.tool_calls else {})

    def excess(self, price: Price) -> str:
        """Return the first limit that a price exceeds, in words; empty if it exceeds none."""
        totals = [("calls", sum(price.calls.values()), self.calls)]
        for name in ("seconds", "cost", "tokens"):
            totals.append((name, getattr(price, name) or 0, getattr(self, name)))
        for tool, limit in self.tool_calls.items():
            totals.append((f"calls of {tool}", price.calls.get(tool, 0), limit))
        # The tolerance is for floating-point sums, such as three calls at 0.1 with the limit 0.3.
        excesses = (
            f"{name} {total:g}, at most {limit:g}"
            for name, total, limit in totals
            if total > limit * (1 + 1e-9)
        )
        return next(excesses, "")


def _check_tool_calls(value: Any) -> None:
    # A value that is no mapping becomes one invalid limit.
    limits = value.values() if isinstance(value, Mapping) else [None]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in limits):
        raise InputError(
            f"The budget tool_calls is {value!r:.80}. Give a whole number for each tool's name, "
            'such as {"search": 2}.'
        )


def _checked_request(request: Any) -> dict[str, Any]:
    if not isinstance(request, Mapping):
        raise InputError(
            f"The limits of a request are of type {type(request).__name__}. Give Limits, or a "
            f"mapping such as {{'step_seconds': 5}}, with keys of {', '.join(_NUMERIC)}."
        )
    for name, value in request.items():
        if name == "tool_calls":
            _check_tool_calls(value)
            continue
        if name not in _NUMERIC:
            raise InputError(
                f"A request has the unknown limit {name!r}. Limits of a request are "
                f"{', '.join(_NUMERIC)}, tool_calls."
            )
        types = (int, float) if name in _FRACTIONAL else (int,)
        if isinstance(value, bool) or not isinstance(value, types) or not 0 < value < inf:
            kind = "number" if name in _FRACTIONAL else "whole number"
            raise InputError(f"A request has the limit {name}={value!r}. Give a {kind} above 0.")
    return dict(request)
