"""Estimates the price of a plan before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.tools import NO_EVIDENCE, Toolbox
from casewright.tools.spec import ESTIMATES


@dataclass(frozen=True, slots=True)
class Price:
    """Calls, time and cost of a plan.

    An estimate is ``None`` if no called tool declares it; else tools without it count as 0.

    Attributes:
        calls: Number of calls by tool; each step is a call, except ``no_evidence``.
        seconds: Latency of the critical path, without retries.
        cost: Maximum cost of all calls, with retries.
        tokens: Maximum number of tokens of all calls, with retries.
        undeclared: By ``latency``, ``cost`` and ``tokens``, the called tools without this estimate.
    """

    calls: Mapping[str, int]
    seconds: float | None = None
    cost: float | None = None
    tokens: float | None = None
    undeclared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the price as JSON, with the price in words as ``text``."""
        tools = {estimate: list(names) for estimate, names in self.undeclared.items()}
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "calls": dict(self.calls), "undeclared": tools, "text": str(self)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Price:
        """Return the price with this JSON form."""
        return cls(**{name: value for name, value in plain.items() if name != "text"})

    def __str__(self) -> str:
        count = sum(self.calls.values())
        names = (f"{tool} ×{n}" if n > 1 else tool for tool, n in self.calls.items())
        parts = [
            f"{count} call{'' if count == 1 else 's'}" + (f" ({', '.join(names)})" * bool(count))
        ]
        parts.append("time unknown" if self.seconds is None else f"about {self.seconds:.3g} s")
        if self.cost is not None:
            parts.append(f"cost at most {self.cost:.6g}")
        if self.tokens is not None:
            parts.append(f"at most {self.tokens:,.0f} tokens")
        unknown = [
            f"no {estimate} of {', '.join(tools)}"
            for estimate, tools in self.undeclared.items()
            if {*tools} < {*self.calls}
        ]
        return "; ".join([*parts, *unknown])


def price_of(
    steps: Sequence[tuple[str, Sequence[int]]],
    toolbox: Toolbox,
    *,
    attempts: int,
    measured: Mapping[str, float] | None,
) -> Price:
    """Return a plan's price, given each step's tool and references; see ``Plan.price``."""
    calls = [tool for tool, _ in steps if tool != NO_EVIDENCE.name]
    declared: dict[str, dict[str, float]] = {name: {} for name in ESTIMATES}
    declared["latency"].update(measured or {})
    for tool in toolbox:
        for estimate, by_tool in declared.items():
            if (value := getattr(tool, estimate)) is not None:
                by_tool[tool.name] = value
    undeclared = {name: tuple(sorted({*calls} - tools.keys())) for name, tools in declared.items()}
    end_times: list[float] = []
    for index, (tool_name, inputs) in enumerate(steps):
        input_times = [end_times[number - 1] for number in inputs if 1 <= number <= index]
        end_times.append(max(input_times, default=0.0) + declared["latency"].get(tool_name, 0.0))

    def total(estimate: str) -> float | None:
        if calls and not {*calls} & declared[estimate].keys():
            return None
        return round(attempts * sum(declared[estimate].get(tool, 0) for tool in calls), 9)

    return Price(
        calls=dict(Counter(calls)),
        seconds=None if total("latency") is None else max(end_times, default=0.0),
        cost=total("cost"),
        tokens=total("tokens"),
        undeclared={estimate: tools for estimate, tools in undeclared.items() if tools},
    )
