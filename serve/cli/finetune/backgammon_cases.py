"""`casewright finetune backgammon-cases`: the decisions that ship with the domain backgammon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("backgammon-cases")
def finetune_backgammon_cases(
    target: Annotated[
        Path,
        typer.Option("--output", help="The JSON Lines file to write to.", metavar="FILE"),
    ],
    decisions: Annotated[int, typer.Option(min=1, help="How many decisions to make.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the rolls and the plays.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Let GNU Backgammon play against itself, and keep its decisions as a case base.

    Needs the program gnubg. 2,000 decisions take some ten minutes on one core.
    """
    from casewright.domains.backgammon.case_base import generate_decisions, write_case_base
    from casewright.domains.backgammon.engine import Engine
    from casewright.errors import InputError
    from casewright.serve.cli.output import print_json, print_table

    if target.is_dir():
        raise InputError(f"--output {target} is a folder. Give the name of a file in it.")
    made = generate_decisions(Engine(), decisions, seed)
    write_case_base(target, made)
    figures = {
        "decisions": len(made),
        "games": len({one.game for one in made}),
        "best play made": round(sum(one.played_or_best == 0 for one in made) / len(made), 3),
        "mean equity lost": round(sum(one.lost(one.played_or_best) for one in made) / len(made), 4),
    }
    if as_json:
        print_json({"file": str(target), **figures})
    else:
        print_table(["figure", "value"], [list(row) for row in figures.items()], str(target))
