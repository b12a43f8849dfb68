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

    ``seconds``, ``cost`` or ``tokens`` is ``None`` if no called tool declares such an estimate; if
    some tools declare one, the others count as 0.

    Attributes:
        calls: Number of calls, by tool; each step is a call, except ``no_evidence``.
        seconds: Latency of the critical path, without retries.
        cost: Maximum cost of all calls, with retries.
        tokens: Maximum number of tokens of all calls, with retries.
        undeclared: For each estimate (``latency``, ``cost``, ``tokens``), the called tools without.
    """

    calls: Mapping[str, int]
    seconds: float | None = None
    cost: float | None = None
    tokens: float | None = None
    undeclared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the price as JSON, with the price in words as ``text``."""
        undeclared = {estimate: list(names) for estimate, names in self.undeclared.items()}
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "calls": dict(self.calls), "undeclared": undeclared, "text": str(self)}

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
        missing = [
            f"no {estimate} of {', '.join(tools)}"
            for estimate, tools in self.undeclared.items()
            if {*tools} < {*self.calls}  # Some called tools lack the estimate, but not all.
        ]
        return "; ".join([*parts, *missing])


def price_of(
    steps: Sequence[tuple[str, Sequence[int]]],
    toolbox: Toolbox,
    *,
    attempts: int,
    latencies: Mapping[str, float] | None,
) -> Price:
    """Return the price of steps, each a tool and the steps that it needs; see ``Plan.price``."""
    calls = [tool for tool, _ in steps if tool != NO_EVIDENCE.name]
    # For each estimate (``latency``, ``cost``, ``tokens``), its values by tool.
    values: dict[str, dict[str, float]] = {name: {} for name in ESTIMATES}
    values["latency"].update(latencies or {})
    for tool in toolbox:
        for estimate, value_by_tool in values.items():
            if (value := getattr(tool, estimate)) is not None:
                value_by_tool[tool.name] = value
    undeclared = {name: tuple(sorted({*calls} - known.keys())) for name, known in values.items()}
    unknown = {name for name, tools in undeclared.items() if calls and {*tools} == {*calls}}
    end_times: list[float] = []
    for index, (tool_name, references) in enumerate(steps):
        start_times = [end_times[number - 1] for number in references if 1 <= number <= index]
        end_times.append(max(start_times, default=0.0) + values["latency"].get(tool_name, 0.0))

    def total(estimate: str) -> float | None:
        if estimate in unknown:
            return None
        return round(attempts * sum(values[estimate].get(tool, 0) for tool in calls), 9)

    return Price(
        calls=dict(Counter(calls)),
        seconds=None if "latency" in unknown else max(end_times, default=0.0),
        cost=total("cost"),
        tokens=total("tokens"),
        undeclared={estimate: tools for estimate, tools in undeclared.items() if tools},
    )
