"""What was used last, of a bounded number, in memory; runs that may still be approved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: Runs of all tenants together.
MOST = 1000


class Latest(Generic[T]):
    """What was used last, of a bounded number.

    Beyond it the tenant that has most loses what it used longest ago: no tenant's many can drive
    out another's few.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, OrderedDict[str, T]] = {}

    def put(self, tenant: str, key: str, value: T, kept: Container[str] = ()) -> list[str]:
        """Note that something was used; returns the keys that were dropped, none of ``kept``."""
        own = self._of.setdefault(tenant, OrderedDict())
        own[key] = value
        own.move_to_end(key)
        dropped = []
        while sum(map(len, self._of.values())) > self._most:
            found = self._oldest(kept)
            if found is None:
                break
            self.remove(*found)
            dropped.append(found[1])
        return dropped

    def get(self, tenant: str, key: str) -> T | None:
        """Return what is there of a tenant by this key."""
        own = self._of.get(tenant)
        return own.get(key) if own is not None else None

    def remove(self, tenant: str, key: str) -> None:
        """Note that something is gone."""
        own = self._of.get(tenant)
        if own is not None:
            own.pop(key, None)
            if not own:
                del self._of[tenant]

    def _oldest(self, kept: Container[str]) -> tuple[str, str] | None:
        for tenant, own in sorted(self._of.items(), key=lambda one: len(one[1]), reverse=True):
            for key in own:
                if key not in kept:
                    return tenant, key
        return None


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run that was answered.

    Attributes:
        tenant: Whose it was.
        question: What was asked.
        answer: The JSON form of the ``Answer``, without paths of this machine.
    """

    tenant: str
    question: str
    answer: Mapping[str, Any]


class RecentRuns:
    """The runs that were answered last."""

    def __init__(self, most: int = MOST) -> None:
        self._runs: Latest[RecentRun] = Latest(most)

    def add(self, run: RecentRun) -> None:
        """Remember a run."""
        self._runs.put(run.tenant, str(run.answer["run_id"]), run)

    def of(self, tenant: str, run_id: str) -> RecentRun | None:
        """Return a tenant's run; ``None`` where there is none, or it is another's."""
        return self._runs.get(tenant, run_id)
