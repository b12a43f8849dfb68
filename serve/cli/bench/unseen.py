"""`casewright bench unseen`: planning for toolboxes that nothing was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Device, DType, Examples, Plot

app = typer.Typer(add_completion=False)


@app.command("unseen")
def bench_unseen(
    planner: Annotated[
        list[str] | None,
        typer.Option(
            help="mistral, local:FOLDER for another adapter or model, smollm2 for the base that is "
            "not tuned, case, or provider:model; several are compared with the first. mistral by "
            "default.",
            metavar="NAME",
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Of the corpus of toolboxes: measuring, or validation to tune by.", metavar="NAME"
        ),
    ] = "measuring",
    cases: Annotated[
        int,
        typer.Option(
            min=0, help="Annotated messages of each toolbox that planners know as plan cases."
        ),
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many messages of each set.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the folders sealtools and bfcl, to measure on, too.", metavar="DIR"
        ),
    ] = None,
    base: Annotated[
        bool, typer.Option("--base/--no-base", help="Whether the untuned base is a control.")
    ] = True,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Plan for toolboxes that nothing was trained on: right tools, whole plans, by class.

    By default from their descriptions and own examples alone. Beside the planners, the case planner
    with the same cases, the untuned base and a fallback plan.
    """
    from casewright.bench.unseen import UnseenTrial, measure_unseen
    from casewright.planner.named import ModelSettings
    from casewright.planner.shipped import SHIPPED

    if split not in ("measuring", "validation"):
        raise InputError(
            f"There is no split {split!r} of unseen toolboxes. --split is measuring or validation."
        )
    trial = UnseenTrial(
        planners=planner or [SHIPPED],
        split="validation" if split == "validation" else "measuring",
        cases=cases,
        limit=limit,
        data=data,
        base=base,
        settings=ModelSettings(device=device, dtype=dtype, examples=examples),
        seed=seed,
    )
    measure_unseen(trial).show(as_json=as_json, plot=plot)
