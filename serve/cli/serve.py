"""`casewright serve`: the HTTP service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from casewright.errors import DependencyError
from casewright.serve.cli.mcp import check_mcp
from casewright.serve.cli.options import ConfigFile, Flags, PlansFolder, with_flags

app = Typer(add_completion=False)


@app.command("serve")
@with_flags("domain", "planner", "adapter", "generator", "encoder", "feedback")
def serve(
    flags: Flags,
    host: Annotated[
        str | None, Option(help="The address to listen on; 127.0.0.1.", metavar="ADDRESS")
    ] = None,
    port: Annotated[
        int | None, Option(help="The port, 8000; 0 takes a free one, and says which.")
    ] = None,
    tokens: Annotated[
        Path | None, Option(help="A TOML file of [[tokens]]: token, tenant.", metavar="FILE")
    ] = None,
    without_tokens: Annotated[
        bool | None,
        Option("--without-tokens/--with-tokens", help="Require no tokens, on a loopback address."),
    ] = None,
    threads: Annotated[
        str | None,
        Option(help="A file for threads, or postgresql://USER@HOST/NAME.", metavar="PLACE"),
    ] = None,
    share_port: Annotated[
        bool | None,
        Option("--share-port/--own-port", help="Share the port with other services of this user."),
    ] = None,
    retain: Annotated[
        str | None, Option(help="Answers to keep: off, verified, approved.", metavar="WHICH")
    ] = None,
    corrections: Annotated[
        Path | None, Option(help="Let users correct plans, into this file.", metavar="FILE")
    ] = None,
    plans_folder: PlansFolder = None,
    pin_plans: Annotated[
        bool | None,
        Option("--pin-plans/--no-pin-plans", help="Let users pin plans in the plans folder."),
    ] = None,
    langserve: Annotated[
        bool | None, Option("--langserve/--no-langserve", help="LangServe's routes too.")
    ] = None,
    mcp: Annotated[
        bool | None, Option("--mcp/--no-mcp", help="MCP tools at /mcp: plan, run_plan, ask.")
    ] = None,
    otel: Annotated[
        bool | None, Option("--otel/--no-otel", help="Export OpenTelemetry spans, by OTEL_….")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Answer questions over HTTP, until told to end: Ctrl+C, or SIGTERM."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise DependencyError(
            "The service needs FastAPI and Uvicorn. Run: pip install 'casewright[serve]'"
        ) from error
    if mcp:
        check_mcp()
    from casewright.serve.service.starting import start

    in_database = threads is not None and threads.startswith(("postgresql://", "postgres://"))
    start(
        config,
        host=host,
        port=port,
        tokens_file=tokens,
        without_tokens=without_tokens,
        threads_file=None if threads is None or in_database else Path(threads),
        threads_url=threads if in_database else None,
        share_port=share_port,
        retain=retain,
        corrections_file=corrections,
        plans_folder=plans_folder,
        pin_plans=pin_plans,
        langserve=langserve,
        mcp=mcp,
        otel=otel,
        **flags,
    )
