"""A bounded cache of the most recently used items, shared fairly among tenants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from typing import Generic, TypeVar

T = TypeVar("T")


class TenantLru(Generic[T]):
    """The most recently used items of all tenants, at most ``limit``; only ``put`` counts as use.

    Beyond the limit, the tenant with the most items loses its least recently used item, so that a
    tenant with many items cannot evict the items of a tenant with few.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[str, OrderedDict[str, T]] = {}

    def put(self, tenant: str, key: str, value: T, protected: Container[str] = ()) -> list[str]:
        """Store an item as the most recent; return the evicted keys, none of them ``protected``."""
        items = self._items.setdefault(tenant, OrderedDict())
        items[key] = value
        items.move_to_end(key)
        evicted = []
        while sum(map(len, self._items.values())) > self._limit:
            if (evictable := self._find_evictable(protected)) is None:
                break
            self.remove(*evictable)
            evicted.append(evictable[1])
        return evicted

    def get(self, tenant: str, key: str) -> T | None:
        """Return a tenant's item by its key; ``None`` if there is none."""
        items = self._items.get(tenant)
        return None if items is None else items.get(key)

    def remove(self, tenant: str, key: str) -> None:
        """Remove an item, if it exists."""
        if items := self._items.get(tenant):
            items.pop(key, None)
            if not items:
                del self._items[tenant]

    def _find_evictable(self, protected: Container[str]) -> tuple[str, str] | None:
        for tenant in sorted(self._items, key=lambda name: len(self._items[name]), reverse=True):
            for key in self._items[tenant]:
                if key not in protected:
                    return tenant, key
        return None
