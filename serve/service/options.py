"""What the service is made of, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from casewright.graph import Generator
    from casewright.planner import Planner
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
    """The settings of the service; their names are those of ``serve/settings.py``.

    Attributes:
        tokens: Tenant of every bearer token; without any, all requests are the tenant ``local``.
        max_body_bytes: The largest request.
        max_concurrency: Questions that are answered at a time; as many more wait for a place.
        request_seconds: What a request may take, its waiting included.
        threads_file: A SQLite file for threads; in memory without one.
        retain: Which answers become cases of their tenant.
        langserve: Whether LangServe's routes are there.
    """

    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_body_bytes: int = 1_048_576
    max_concurrency: int = 32
    request_seconds: float = 60.0
    threads_file: Path | None = None
    retain: Retain = "off"
    langserve: bool = True
