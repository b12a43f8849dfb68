"""`casewright show`: a saved run, as `ask` printed it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Typer

from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_answer, print_json

app = Typer(add_completion=False)


@app.command()
def show(
    file: Annotated[Path, Argument(help="What casewright ask --save wrote.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Show a saved run: the question, then plan, answer and evidence as ask printed them.

    Nothing is run again. With --json it is the answer alone, the object that ask --json printed.
    """
    from casewright.graph.run_file import read_run

    run = read_run(file)
    if as_json:
        print_json(run.answer.to_json())
    else:
        print_answer(run.answer.to_json(), run.question)
