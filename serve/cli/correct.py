"""`casewright correct`: a wrong plan becomes an annotated message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, ContextText, HistoryFile, ToolsOf

app = typer.Typer(add_completion=False)


@app.command("correct")
def correct(
    domain: ToolsOf,
    output: Annotated[
        Path, typer.Option(help="Annotated messages, JSON Lines, to add it to.", metavar="FILE")
    ],
    question: Annotated[str | None, typer.Argument(help="What was asked.")] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="In place of the question, a run that ask --save wrote.", metavar="FILE"),
    ] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(
            help="The right plan; may be given once a step. Typed or piped where it is not given, "
            "a step a line.",
            metavar="STEP",
        ),
    ] = None,
    context: ContextText = None,
    history: HistoryFile = None,
    as_json: AsJson = False,
) -> None:
    """Turn a wrong plan into an annotated message: the question with its right plan.

    A message of the file that has this question gets the plan in the place of its own.
    """
    from casewright.finetune.queries.correction import corrected, keep_correction
    from casewright.finetune.queries.query_files import check_output
    from casewright.graph.run_file import read_run
    from casewright.serve.cli.output import print_json, visible
    from casewright.serve.cli.own_tools import own_tools
    from casewright.serve.session.dialogue import read_context, read_history

    if (question is None) == (run is None):
        raise InputError("Give either the question or --run FILE.")
    check_output(output)
    known, said = read_context(context), read_history(history)
    if run is not None:
        saved = read_run(run)
        question = saved.question
        if not plan:
            typer.echo(visible(f"{question}\n{saved.answer.plan}"), err=True)
    text = "\n".join(plan) if plan else _typed()
    with own_tools(domain, None, None) as own:
        record = corrected(str(question), text, own.toolbox, known, said)
    outcome = keep_correction(output, record)
    if as_json:
        print_json({"file": str(output), "outcome": outcome, "message": record})
        return
    typer.echo(f"{output}: {outcome}.")
    typer.echo(
        "Planners whose domain reads that file know it at once. To train on it:\n"
        f"  casewright finetune adapt --domain {domain} --input {output} --output adapter"
    )


def _typed() -> str:
    """Return the lines that are typed up to an empty one, or piped."""
    if sys.stdin.isatty():
        typer.echo("The right plan, a step a line; an empty line ends it:", err=True)
    lines: list[str] = []
    for line in sys.stdin:
        if not line.strip():
            break
        lines.append(line.rstrip("\n"))
    return "\n".join(lines)
