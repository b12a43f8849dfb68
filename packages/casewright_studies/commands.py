"""`casewright bench legal`, `reaper`, `small-talk` and `truthfulqa`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option, echo

from casewright.errors import InputError
from casewright.serve.cli.bench.options import OnlySet, Seed, SetLimit
from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, EncoderName, Plot

WorkFolder = Annotated[Path | None, Option(help="A folder from which a stopped run continues.")]


def bench_legal(
    data: Annotated[
        Path,
        Option(
            help="A folder with ALQA's qa.jsonl and pairs.jsonl or the multi-hop sets; or shipped, "
            "the domain's cases."
        ),
    ] = Path("shipped"),
    only: OnlySet = None,
    encoder: EncoderName = None,
    answers: Annotated[bool, Option("--answers", help="Measure answers, not retrieval.")] = False,
    generator: Annotated[
        str, Option(help="extractive, provider:model, local:smollm2.")
    ] = "extractive",
    against: Annotated[str | None, Option(help="With --answers: a second encoder.")] = None,
    limit: SetLimit = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Score retrieval for questions with two parent cases, or with --answers the answers.

    The first run encodes every case: some minutes for the three multi-hop sets.
    """
    from casewright.bench.legal.data import SHIPPED
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.planner import chat_model
    from casewright.stores.encoders.sources import named_encoder
    from casewright_studies.legal_answers import measure_answers
    from casewright_studies.legal_retrieval import measure_legal

    if not answers and (generator != EXTRACTIVE or against is not None):
        raise InputError("--generator and --against need --answers.")
    folder = None if str(data) == SHIPPED else data
    if answers:
        check_generator(generator)
        model = None if generator == EXTRACTIVE else chat_model(generator)
        first, other = named_encoder(encoder), None if against is None else named_encoder(against)
        report = measure_answers(folder, first, model, against=other, only=only, limit=limit)
    else:
        report = measure_legal(folder, named_encoder(encoder), only=only, limit=limit)
    show(report, as_json=as_json, plot=plot)


def bench_reaper(
    table: Annotated[list[str] | None, Option(help="1, 2 or 3; repeatable; default: all.")] = None,
    work: WorkFolder = None,
    steps: Annotated[int | None, Option(min=1, help="Training steps; else the recipe's.")] = None,
    planner: Annotated[Path | None, Option(help="Table 1's planner; else the shipped one.")] = None,
    instructions: Annotated[
        Path | None, Option(help="A folder of generic instructions, for rows with a share of them.")
    ] = None,
    recipe: Annotated[str, Option(help="The trainings' recipe: a TOML file or a name.")] = "reaper",
    limit: Annotated[int, Option(min=1, help="Limit of questions of each set.")] = 100,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print REAPER's tables for a small model; each row of Tables 2 and 3 is a training.

    Hours the first time; --table and --steps shorten it. The same command continues a stopped run.
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
    """Recognise small talk from examples: REAPER's human_small_talk, which needs no evidence."""
    from casewright_studies.small_talk import measure_small_talk

    show(measure_small_talk(limit, seed, model=model), as_json=as_json)


def bench_truthfulqa(
    data: Annotated[Path, Option(help="The folder with v1/mc_task.json.", metavar="DIR")],
    model: Annotated[
        str, Option(help="mistral, smollm2 (its base), or a language model's name or folder.")
    ] = "mistral",
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    primer: Annotated[
        Path | None, Option(help="The fixed primer, JSON Lines: question, answer.", metavar="FILE")
    ] = None,
    k: Annotated[int, Option("-k", min=2, help="Demonstrations shown.")] = 6,
    limit: Annotated[int | None, Option(min=2, help="Limit of questions, drawn at random.")] = None,
    work: WorkFolder = None,
    seed: Annotated[int, Option(min=0, help="The seed of the controls.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model's answers with six retrievers of demonstrations (RAGSys's study).

    Some minutes on two cores with the model that ships.
    """
    from casewright.stores import default_encoder
    from casewright_studies.truthfulqa import Study, measure_truthfulqa

    study = Study(data, model, adapter, device, dtype, primer, work, k=k, limit=limit, seed=seed)
    show(measure_truthfulqa(study, default_encoder()), as_json=as_json, plot=plot)
