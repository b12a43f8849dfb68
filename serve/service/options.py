"""What the service is made of, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from casewright.graph import Generator
    from casewright.planner import Planner
    from casewright.serve.settings.tokens import Grant
    from casewright.stores import CaseStore
    from casewright.tools import Toolbox

Retain = Literal["off", "verified", "approved"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What answers questions, opened before the service starts.

    Attributes:
        domain: Its name: threads and kept answers of several domains stay apart.
        toolbox: The tools.
        planner: Writes plans.
        generator: Words answers.
        scopes: Scope field to the values that a request may name, the default first.
        stores: The stores that have to answer for the service to be ready.
        description: What can be asked about, one sentence.
        questions: Questions to try.
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
    """The settings of the service; their names are those of ``serve/settings/settings.py``.

    Attributes:
        tokens: What every bearer token gives; without any, all requests are the tenant ``local``.
        tokens_again: Returns them where they have changed since, else ``None``.
        max_body_bytes: The largest request.
        max_concurrency: Questions that are answered at a time; as many more wait for a place.
        max_concurrency_per_tenant: Those of one tenant; by default half of them, where there are
            several tenants.
        max_tool_threads: Threads of tools that block.
        request_seconds: What a request may take, its waiting included.
        threads_file: A SQLite file for threads; in memory without one.
        threads_url: A PostgreSQL database for threads, in place of a file.
        thread_days: Days after which an answered thread of a file or a database is deleted.
        retain: Which answers become cases of their tenant.
        corrections_file: A JSON Lines file for plans that users put right; none without one.
        langserve: Whether LangServe's routes are there.
    """

    tokens: Mapping[str, Grant] = field(default_factory=dict, repr=False)
    tokens_again: Callable[[], Mapping[str, Grant] | None] = lambda: None
    max_body_bytes: int = 1_048_576
    max_concurrency: int = 32
    max_concurrency_per_tenant: int | None = None
    max_tool_threads: int = 256
    request_seconds: float = 60.0
    threads_file: Path | None = None
    threads_url: str | None = field(default=None, repr=False)
    thread_days: float | None = None
    retain: Retain = "off"
    corrections_file: Path | None = None
    langserve: bool = True

    @property
    def threads_in_memory(self) -> bool:
        """Whether threads are kept in memory alone."""
        return self.threads_file is None and self.threads_url is None

    def share_of(self, places: int) -> int:
        """Return how many of some places one tenant gets: half, where there are several."""
        several = len({grant.tenant for grant in self.tokens.values()}) > 1
        return ceil(places / 2) if several else places

    @property
    def tenant_concurrency(self) -> int:
        """How many questions of one tenant are answered at a time."""
        own = self.max_concurrency_per_tenant or self.share_of(self.max_concurrency)
        return min(own, self.max_concurrency)
