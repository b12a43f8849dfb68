"""`casewright plan`: look-up plans that are written, and not run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.flags import Flags, with_flags
from casewright.serve.cli.options import AsJson, ConfigFile, ContextText, Examples, Grammar

if TYPE_CHECKING:
    from casewright.serve.session.session import Session

app = typer.Typer(add_completion=False)


@app.command()
@with_flags("domain", "planner", "adapter", "device", "dtype")
def plan(
    flags: Flags,
    question: Annotated[str | None, typer.Argument(help="One question to plan for.")] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="A JSON Lines file of queries to plan for.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", help="Where to write their plans; stdout by default.")
    ] = None,
    context: ContextText = None,
    examples: Examples = None,
    grammar: Grammar = True,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the look-up plan of one question, or of every query of a file; nothing is run."""
    from casewright.planner.request import PlanRequest, check_question
    from casewright.serve.cli.output import print_json, visible
    from casewright.serve.session.chosen import chosen
    from casewright.serve.session.dialogue import read_context
    from casewright.serve.session.session import open_chosen

    if (question is None) == (source is None):
        raise InputError("Give either a question or --input FILE.")
    if question is not None:
        check_question(question)
    elif source is not None and not source.is_file():
        raise InputError(f"{source} is no file. Give a JSON Lines file of queries.")
    if source is None and target is not None:
        raise InputError("--output goes with --input FILE. Give one, or leave --output out.")
    if source is not None and context is not None:
        raise InputError("--context goes with one question; a file's records have their own.")
    if target is not None:
        _check_target(target, source)
    known = read_context(context)
    session = open_chosen(chosen(config, **flags), examples=examples, constrained=grammar)
    try:
        if source is not None:
            _plan_file(source, target, session)
            return
        assert question is not None
        result = session.planner.plan(PlanRequest(question, session.opened.toolbox, known))
    finally:
        session.close()
    if as_json:
        print_json(
            {
                "id": None,
                "plan": str(result.plan),
                "milliseconds": round(result.milliseconds, 3),
                "planner": result.planner,
                "attempts": result.attempts,
                "fallback": result.fallback or None,
                "written": result.written or None,
                "error": None,
                **result.doubt(),
            }
        )
        return
    typer.echo(str(result.plan))
    if result.fallback:
        typer.echo(f"A fallback plan: {result.fallback}", err=True)
    if result.asks_back:
        readings = "".join(f"\nOr:\n{plan}" for plan in result.alternatives[:1])
        typer.echo(f"Not sure that this is meant.{readings}", err=True)
    if result.written:
        typer.echo(f"What was written:\n{visible(result.written)}", err=True)


def _check_target(target: Path, source: Path | None) -> None:
    if source is not None and target.exists() and target.samefile(source):
        raise InputError("--output is the --input file. Choose another, to lose nothing.")
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InputError(f"{target} cannot be written. Give a file in a folder that exists.")


def _plan_file(source: Path, target: Path | None, session: Session) -> None:
    from casewright.serve.cli.plan_file import plan_file

    toolbox, planner = session.opened.toolbox, session.planner
    if target is None:
        records, bad = plan_file(source, sys.stdout, toolbox, planner)
    else:
        try:
            with target.open("w", encoding="utf-8", newline="\n") as file:
                records, bad = plan_file(source, file, toolbox, planner)
        except OSError as error:
            raise InputError(f"{target} cannot be written: {error.strerror}.") from error
    if bad:
        # Not raised: with --json its object would stand among the records on stdout.
        typer.echo(
            f"error: {bad} of {records} records could not be planned for; their error says why. "
            "The others are answered.",
            err=True,
        )
        raise typer.Exit(2)
