"""The whole service and its client in this process, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from casewright.graph import ExtractiveGenerator
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.settings.tokens import Grant
from casewright.tools import Toolbox
from tests.serve.service.helpers import ACME, TOKENS
from tests.serve.service.server_process import QuestionPlanner, tools


@asynccontextmanager
async def service_client(
    folder: Path, *, scopes: Mapping[str, list[str]] | None = None, **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service with the tests' tools, whose log is in the folder."""
    parts = Parts(
        "tests",
        Toolbox(tools(folder / "log")),
        QuestionPlanner(),
        ExtractiveGenerator(),
        scopes or {},
    )
    tokens = {token: Grant(tenant) for token, tenant in TOKENS.items()}
    app = create_app(parts, ServiceOptions(**{"tokens": tokens, "langserve": False, **options}))
    headers = {"Authorization": f"Bearer {ACME}"}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=30
        ) as client,
    ):
        yield client
