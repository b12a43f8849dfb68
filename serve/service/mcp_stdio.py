"""Serves the MCP tools over this process's stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import closing, redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from casewright.planner.named import refuse_single_user_planner
from casewright.serve.service.mcp_tools import tools_server
from casewright.serve.service.options import ServiceOptions
from casewright.serve.service.runs import Runs
from casewright.serve.service.server import configure_logging
from casewright.serve.service.starting import service_parts
from casewright.serve.service.tokens import LOCAL_TENANT
from casewright.serve.session.choice import chosen_parts
from casewright.serve.session.option_values import command_scope
from casewright.serve.session.session import open_chosen
from casewright.serve.settings.settings import load_settings


def serve_stdio(config: Path | None = None, scope: list[str] | None = None, **flags: Any) -> None:
    """Serve one client until it closes stdin; ``scope`` is the user's, as texts ``FIELD=VALUE``.

    For ``config`` and ``flags`` see ``load_settings``. Raise ``CasewrightError`` if a setting is
    invalid, or the domain cannot be opened.
    """
    loaded = load_settings(config, **flags)
    chosen = chosen_parts(loaded)
    refuse_single_user_planner(chosen.planner)
    user_scope = command_scope(chosen.domain.scopes, scope, values={}, tenant=None)
    configure_logging(loaded.settings.log_level)
    stdout_buffer = sys.stdout.buffer
    with closing(open_chosen(chosen)) as session:
        run_settings = loaded.settings.model_dump(include={"max_calls", "max_cost", "approve"})
        parts = service_parts(session, chosen)
        runs = Runs(parts, ServiceOptions(**run_settings), saver=None, answers=None)
        # Text that a tool prints must not mix with the messages on stdout.
        with redirect_stdout(sys.stderr):
            asyncio.run(_serve(runs, user_scope, loaded.settings.request_seconds, stdout_buffer))
        runs.close()


async def _serve(
    runs: Runs, scope: Mapping[str, str], max_seconds: float, stdout_buffer: Any
) -> None:
    server = tools_server(runs, LOCAL_TENANT, scope, max_seconds)
    stdout = anyio.wrap_file(TextIOWrapper(stdout_buffer, encoding="utf-8"))
    async with stdio_server(stdout=stdout) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
