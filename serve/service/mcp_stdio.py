"""The MCP tools over this process's stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from casewright.planner.named import check_shared
from casewright.serve.service.mcp_tools import tools_server
from casewright.serve.service.options import ServiceOptions
from casewright.serve.service.runs import Runs
from casewright.serve.service.server import write_log
from casewright.serve.service.starting import parts_of
from casewright.serve.service.tokens import LOCAL, Caller
from casewright.serve.session.choice import choice_of
from casewright.serve.session.scopes import command_scope
from casewright.serve.session.session import open_chosen
from casewright.serve.settings.settings import load_settings


def serve_stdio(config: Path | None = None, scope: list[str] | None = None, **flags: Any) -> None:
    """Serve one client until it closes stdin; ``scope`` says who asks, as ``FIELD=VALUE`` each.

    Raises:
        CasewrightError: A setting has no such value, or something cannot be opened.
    """
    loaded = load_settings(config, **flags)
    choice = choice_of(loaded)
    check_shared(choice.planner)
    asker = command_scope(choice.domain.scopes, scope, {}, None)
    write_log(loaded.settings.log_level)
    session = open_chosen(choice)
    out = sys.stdout.buffer
    try:
        bounds = loaded.settings.model_dump(include={"max_calls", "max_cost", "approve"})
        runs = Runs(parts_of(session, choice), ServiceOptions(**bounds), None, None)
        # What a tool prints must not get among the messages.
        with redirect_stdout(sys.stderr):
            asyncio.run(_serve(runs, asker, loaded.settings.request_seconds, out))
        runs.close()
    finally:
        session.close()


async def _serve(runs: Runs, asker: Mapping[str, str], seconds: float, out: Any) -> None:
    server = tools_server(runs, Caller(LOCAL), asker, seconds)
    stdout = anyio.wrap_file(TextIOWrapper(out, encoding="utf-8"))
    async with stdio_server(stdout=stdout) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
