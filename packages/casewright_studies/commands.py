"""`casewright bench reaper`, `small-talk` and `truthfulqa`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option, echo

from casewright.serve.cli.bench.options import Seed
from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Plot

WorkFolder = Annotated[Path | None, Option(help="A folder from which a stopped run continues.")]


def bench_reaper(
    table: Annotated[list[str] | None, Option(help="1, 2 or 3; repeatable; default: all.")] = None,
    work: WorkFolder = None,
    steps: Annotated[int | None, Option(min=1, help="Training steps; default: recipe's.")] = None,
    planner: Annotated[Path | None, Option(help="Table 1's planner; default: shipped.")] = None,
    instructions: Annotated[
        Path | None, Option(help="A folder of generic instructions, which some rows need.")
    ] = None,
    recipe: Annotated[str, Option(help="The trainings' recipe: a TOML file or a name.")] = "reaper",
    limit: Annotated[int, Option(min=1, help="Limit of questions of each test set.")] = 100,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print REAPER's tables for a small model; each row of Tables 2 and 3 needs a training.

    Takes hours; --table and --steps shorten it. The same command continues a stopped run.
    """
    from casewright_studies.reaper import TABLES, ReaperTrial, measure_reaper

    trial = ReaperTrial(
        tables=tuple(dict.fromkeys(table or TABLES)),
        recipe=recipe,
        steps=steps,
        planner=planner,
        instructions=instructions,
        limit=limit,
        seed=seed,
        **({} if work is None else {"folder": work}),
    )
    try:
        report = measure_reaper(trial)
    except KeyboardInterrupt:
        echo("Stopped. The same command continues.", err=True)
        raise
    show(report, as_json=as_json, plot=plot)


def bench_small_talk(
    limit: Annotated[int, Option(min=1, help="Limit of messages of each class.")] = 100,
    model: Annotated[
        bool, Option("--model/--no-model", help="Also ask the packaged language model.")
    ] = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how well planners recognise small talk (REAPER's class human_small_talk)."""
    from casewright_studies.small_talk import measure_small_talk

    show(measure_small_talk(limit, seed, with_model=model), as_json=as_json)


def bench_truthfulqa(
    data: Annotated[Path, Option(help="The folder with v1/mc_task.json.", metavar="DIR")],
    model: Annotated[
        str, Option(help="mistral, smollm2 (mistral's base), or a language model's name or folder.")
    ] = "mistral",
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    primer: Annotated[
        Path | None,
        Option(help="The fixed primer: JSON Lines of question, answer.", metavar="FILE"),
    ] = None,
    k: Annotated[int, Option("-k", min=2, help="Demonstrations in a prompt.")] = 6,
    limit: Annotated[int | None, Option(min=2, help="Limit of questions, drawn at random.")] = None,
    work: WorkFolder = None,
    seed: Annotated[int, Option(min=0, help="The seed of draws and controls.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model's answers with six retrievers of demonstrations (RAGSys's study).

    Takes about half a minute for each question on two cores.
    """
    from casewright.stores import default_encoder
    from casewright_studies.truthfulqa import Study, measure_truthfulqa

    study = Study(data, model, adapter, device, dtype, primer, work, k=k, limit=limit, seed=seed)
    show(measure_truthfulqa(study, default_encoder()), as_json=as_json, plot=plot)
