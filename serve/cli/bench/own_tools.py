"""`casewright bench own-tools`: planning for tools of one's own, by annotated messages known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Device, DType, Examples

app = typer.Typer(add_completion=False)


@app.command("own-tools")
def bench_own_tools(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with tools.py (its toolbox, or a function that returns it; it is run), "
            "learn.jsonl and test.jsonl.",
            metavar="DIR",
        ),
    ] = None,
    planner: Annotated[
        list[str] | None,
        typer.Option(
            help="As for bench unseen; local:DIR for an adapter of your own. case by default.",
            metavar="NAME",
        ),
    ] = None,
    cases: Annotated[
        str,
        typer.Option(
            help="How many annotated messages planners know, in turn; a set that has fewer leaves "
            "that number out.",
            metavar="N,N,…",
        ),
    ] = "0,5,20,60",
    seeds: Annotated[int, typer.Option(min=1, help="Draws of these messages.")] = 5,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus/--no-corpus", help="Whether toolboxes of the corpus are asked, too."
        ),
    ] = True,
    split: Annotated[
        str,
        typer.Option(help="Which of them: measuring, or validation to tune by.", metavar="NAME"),
    ] = "measuring",
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many messages of each set.")
    ] = None,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
    as_json: AsJson = False,
) -> None:
    """Plan for tools of your own with ever more annotated messages: right tools, whole plans.

    The messages that planners know are drawn by class, again and again. Beside the planners, the
    case planner and a fallback plan.
    """
    from casewright.bench.own_tools import OwnToolsTrial, measure_own_tools
    from casewright.finetune.corpus import Split
    from casewright.planner.named import CASE_PLANNER, ModelSettings

    if split not in ("measuring", "validation"):
        raise InputError(
            f"There is no split {split!r} of unseen toolboxes. --split is measuring or validation."
        )
    part: Split | None = "validation" if split == "validation" else "measuring"
    trial = OwnToolsTrial(
        planners=planner or [CASE_PLANNER],
        data=data,
        cases=_numbers(cases),
        seeds=seeds,
        split=part if corpus else None,
        limit=limit,
        settings=ModelSettings(device=device, dtype=dtype, examples=examples),
    )
    measure_own_tools(trial).show(as_json=as_json, plot=None)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise InputError(f"--cases {text} are no numbers. Write them as 0,5,20.")
    return [int(part) for part in parts]
