"""`casewright show`: a saved run, as `ask` printed it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="What casewright ask --save wrote.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Show a saved run: the question, then plan, answer and evidence as ask printed them.

    Nothing is run again. With --json it is the answer alone, the object that ask --json printed.
    """
    from casewright.graph.run_file import read_run
    from casewright.serve.cli.output import print_answer, print_json, print_question

    saved = read_run(file)
    answer = saved.answer.to_json()
    if as_json:
        print_json(answer)
        return
    if saved.question:
        print_question(saved.question)
    print_answer(answer)


def check_run_file(file: Path) -> None:
    """Raise ``InputError`` where no run can be saved, before what takes long."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise InputError(f"--save {file} cannot be written. Give a file in a folder that exists.")
