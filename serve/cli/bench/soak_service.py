"""The service that ``casewright bench soak`` kills, in processes of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casewright.graph import ExtractiveGenerator
from casewright.planner import Planner
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.tools import Toolbox


def service_of(toolbox: Toolbox, planner: Planner, threads: Path) -> Any:
    """Return the service of a toolbox as an ASGI application, with its threads in a file."""
    parts = Parts("soak", toolbox, planner, ExtractiveGenerator())
    return create_app(parts, ServiceOptions(threads_file=threads, langserve=False))
