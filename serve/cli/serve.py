"""The commands `casewright serve` (the HTTP service) and `mcp` (the MCP server over stdio)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import Option, Typer

from casewright.errors import DependencyError
from casewright.serve.cli.options import ConfigFile, Flags, PlansFolder, Scope, with_flags

app = Typer(add_completion=False)
#: Arguments of ``_check_installed``: the error message, and the modules of an MCP server.
_MCP_REQUIREMENTS = (
    "An MCP server needs MCP's library and the service. Run: pip install 'casewright[serve,mcp]'",
    *("fastapi", "mcp.server", "prometheus_client"),
)


def _switch(names: str, help_text: str) -> Any:
    return Annotated[bool | None, Option(f"--{names}", help=help_text)]


#: The options for settings that only the service has.
_OPTIONS = {
    "host": Annotated[str | None, Option(help="Address; default 127.0.0.1.", metavar="ADDRESS")],
    "port": Annotated[int | None, Option(help="Port; default 8000; 0 takes a free one.")],
    "without_tokens": _switch(
        "without-tokens/--with-tokens", "Require no tokens; serve only this machine."
    ),
    "share_port": _switch("share-port/--own-port", "Share the port with your other services."),
    "compute_threads": Annotated[int | None, Option(help="Threads that plan and quote.")],
    "shared_runs": _switch("shared-runs/--own-runs", "Encode texts of several questions together."),
    "retain": Annotated[
        str | None, Option(help="Answers to keep: off, verified, approved.", metavar="WHICH")
    ],
    "plans_folder": PlansFolder,
    "pin_plans": _switch("pin-plans/--no-pin-plans", "Let users pin plans in the plans folder."),
    "langserve": _switch("langserve/--no-langserve", "Add LangServe's routes."),
    "mcp": _switch("mcp/--no-mcp", "Add MCP tools at /mcp: plan, run_plan, ask."),
    "otel": _switch("otel/--no-otel", "Export OpenTelemetry spans, as variables OTEL_… say."),
}


@app.command("serve")
@with_flags("domain", "planner", "adapter", "generator", "encoder", "feedback", **_OPTIONS)
def serve(
    flags: Flags,
    tokens: Annotated[
        Path | None, Option(help="A TOML file of [[tokens]] with token and tenant.", metavar="FILE")
    ] = None,
    threads: Annotated[
        str | None,
        Option(help="Conversations: a file, or postgresql://USER@HOST/NAME.", metavar="PLACE"),
    ] = None,
    corrections: Annotated[
        Path | None, Option(help="Let users correct plans; save corrections here.", metavar="FILE")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Answer questions over HTTP until Ctrl+C or SIGTERM."""
    message = "The service needs FastAPI and Uvicorn. Run: pip install 'casewright[serve]'"
    _check_installed(message, "fastapi", "uvicorn")
    if flags["mcp"]:
        _check_installed(*_MCP_REQUIREMENTS)
    from casewright.serve.service.starting import start

    is_url = threads is not None and threads.startswith(("postgresql://", "postgres://"))
    start(
        config,
        tokens_file=tokens,
        threads_file=None if threads is None or is_url else Path(threads),
        threads_url=threads if is_url else None,
        corrections_file=corrections,
        **flags,
    )


@app.command("mcp")
@with_flags("domain", "planner", "adapter", "generator", "encoder", "feedback")
def serve_mcp(flags: Flags, scope: Scope = None, config: ConfigFile = None) -> None:
    """Offer plan, run_plan and ask to the MCP client that starts this command, over stdio."""
    _check_installed(*_MCP_REQUIREMENTS)
    from casewright.serve.service.mcp_stdio import serve_stdio

    serve_stdio(config, scope, **flags)


def _check_installed(message: str, *modules: str) -> None:
    """Raise ``DependencyError`` with this message if a module cannot be imported."""
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        raise DependencyError(message) from error
