"""Runs that may still be approved: a bounded number, in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Runs of all tenants together; the oldest go first.
MOST = 1000


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run that was answered.

    Attributes:
        tenant: Whose it was.
        question: What was asked.
        answer: The JSON form of the ``Answer``.
    """

    tenant: str
    question: str
    answer: Mapping[str, Any]


class RecentRuns:
    """The runs that were answered last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runs: OrderedDict[str, RecentRun] = OrderedDict()

    def add(self, run: RecentRun) -> None:
        """Remember a run."""
        self._runs[str(run.answer["run_id"])] = run
        while len(self._runs) > self._most:
            self._runs.popitem(last=False)

    def of(self, tenant: str, run_id: str) -> RecentRun | None:
        """Return a tenant's run; ``None`` where there is none, or it is another's."""
        run = self._runs.get(run_id)
        return run if run is not None and run.tenant == tenant else None
