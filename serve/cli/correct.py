"""`casewright correct`: a wrong plan becomes an annotated message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, ContextText, HistoryFile, ToolsOf
from casewright.serve.cli.output import print_json, visible
from casewright.serve.cli.own_tools import own_tools

app = Typer(add_completion=False)


@app.command("correct")
def correct(
    domain: ToolsOf,
    output: Annotated[
        Path, Option(help="Annotated messages, JSON Lines, to add it to.", metavar="FILE")
    ],
    question: Annotated[str | None, Argument(help="What was asked.")] = None,
    run: Annotated[
        Path | None, Option(help="A run of ask --save in place of the question.", metavar="FILE")
    ] = None,
    plan: Annotated[
        list[str] | None,
        Option(help="The right plan, once a step; read from stdin by default.", metavar="STEP"),
    ] = None,
    context: ContextText = None,
    history: HistoryFile = None,
    as_json: AsJson = False,
) -> None:
    """Turn a wrong plan into an annotated message: the question with its right plan.

    It replaces the plan of a message with the same question in the file.
    """
    from casewright.finetune.queries.correction import corrected, keep_correction
    from casewright.finetune.queries.query_files import check_output
    from casewright.graph.run_file import read_run
    from casewright.serve.session.dialogue import read_context, read_history

    if (question is None) == (run is None):
        raise InputError("Give either the question or --run FILE.")
    check_output(output)
    known, turns = read_context(context), read_history(history)
    if run is not None:
        saved = read_run(run)
        question = saved.question
        if not plan:
            echo(visible(f"{question}\n{saved.answer.plan}"), err=True)
    text = "\n".join(plan or _read_steps())
    with own_tools(domain) as tools:
        record = corrected(str(question), text, tools.toolbox, known, turns)
    outcome = keep_correction(output, record)
    if as_json:
        print_json({"file": str(output), "outcome": outcome, "message": record})
        return
    echo(f"{output}: {outcome}.")
    echo(
        "Planners whose domain reads that file know it at once. To train on it:\n"
        f"  casewright finetune adapt --domain {domain} --input {output} --output adapter"
    )


def _read_steps() -> list[str]:
    """Return the lines from stdin up to an empty one."""
    if sys.stdin.isatty():
        echo("The right plan, a step a line; an empty line ends it:", err=True)
    lines: list[str] = []
    for line in sys.stdin:
        if not line.strip():
            break
        lines.append(line.rstrip("\n"))
    return lines
