"""`casewright mcp`: plans and answers as tools of an MCP client, over stdio."""

from __future__ import annotations

from typer import Typer

from casewright.errors import DependencyError
from casewright.serve.cli.options import ConfigFile, Flags, Scope, with_flags

app = Typer(add_completion=False)


@app.command("mcp")
@with_flags("domain", "planner", "adapter", "generator", "encoder", "feedback")
def mcp(flags: Flags, scope: Scope = None, config: ConfigFile = None) -> None:
    """Offer plan, run_plan and ask to the MCP client that starts this command, over stdio."""
    check_mcp()
    from casewright.serve.service.mcp_stdio import serve_stdio

    serve_stdio(config, scope, **flags)


def check_mcp() -> None:
    """Raise ``DependencyError`` unless the packages of an MCP server are installed."""
    try:
        import fastapi  # noqa: F401
        import mcp.server  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise DependencyError(
            "An MCP server needs MCP's library and the service. Run: pip install "
            "'casewright[serve,mcp]'"
        ) from error
