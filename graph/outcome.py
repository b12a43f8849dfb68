"""How a step ended: in exactly one of five ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["done", "empty", "failed", "timed_out", "skipped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended.

    Attributes:
        step: For example ``"s2"``.
        tool: Its tool.
        status: ``done``; ``empty`` (no results); ``failed`` (the tool raised, or returned what it
            had not declared); ``timed_out``; ``skipped`` (what it refers to is not there).
        arguments: The arguments that the tool was called with.
        rows: Its results; empty unless ``done``.
        error: Why it did not end ``done``; never a result for another step.
        attempts: How often the tool was called.
        started: Milliseconds from the start of the execution to its first call.
        milliseconds: Time from its first call to its end.
        reports: What the tool told of its last attempt: one object a round of relevance feedback,
            for example.
    """

    step: str
    tool: str
    status: Status
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()
    error: str = ""
    attempts: int = 0
    started: float = 0.0
    milliseconds: float = 0.0
    reports: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            **asdict(self),
            "rows": [dict(row) for row in self.rows],
            "reports": [dict(report) for report in self.reports],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """Rebuild an outcome from its JSON-plain form."""
        return cls(**data)
