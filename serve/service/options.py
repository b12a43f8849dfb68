"""The service's components and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Literal

from casewright.graph import Generator
from casewright.planner import Planner
from casewright.serve.settings.tokens import Grant
from casewright.stores import CaseStore
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that answer questions; they are opened before the service starts.

    Attributes:
        domain: The domain's name; each domain has its own threads and retained answers.
        scopes: Values that a request may name, by scope field; the first value is the default.
        stores: The domain's stores by name. The service is ready only if all stores respond.
        description: The domain in one sentence.
        questions: Example questions.
    """

    domain: str
    toolbox: Toolbox
    planner: Planner
    generator: Generator
    scopes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stores: Mapping[str, CaseStore] = field(default_factory=dict)
    description: str = ""
    questions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options of the service; ``serve/settings/settings.py`` describes most of them.

    Attributes:
        tokens: The grant of each bearer token; without tokens, the tenant is always ``local``.
        changed_tokens: Returns the tokens if they changed since the last call, else ``None``.
        max_concurrency_per_tenant: Replaces ``share_of(max_concurrency)``, the default.
        compute_threads: Number of threads in which planners and generators compute, at least 1.
    """

    tokens: Mapping[str, Grant] = field(default_factory=dict, repr=False)
    changed_tokens: Callable[[], Mapping[str, Grant] | None] = lambda: None
    max_body_bytes: int = 1_048_576
    max_concurrency: int = 32
    max_concurrency_per_tenant: int | None = None
    max_tool_threads: int = 256
    compute_threads: int = 8
    request_seconds: float = 60.0
    threads_file: Path | None = None
    threads_url: str | None = field(default=None, repr=False)
    thread_days: float | None = None
    retain: Literal["off", "verified", "approved"] = "off"
    corrections_file: Path | None = None
    plans_folder: Path | None = None
    pin_plans: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    approve: Literal["declared", "always"] = "declared"
    langserve: bool = True
    mcp: bool = False

    @property
    def threads_in_memory(self) -> bool:
        """True if threads are stored in memory only."""
        return self.threads_file is None and self.threads_url is None

    def share_of(self, total: int) -> int:
        """Return a tenant's part of a total: all, or half, rounded up, if others exist."""
        has_several_tenants = len({grant.tenant for grant in self.tokens.values()}) > 1
        return ceil(total / 2) if has_several_tenants else total

    @property
    def tenant_concurrency(self) -> int:
        """Maximum number of a tenant's questions that run at the same time."""
        share = self.max_concurrency_per_tenant or self.share_of(self.max_concurrency)
        return min(share, self.max_concurrency)
