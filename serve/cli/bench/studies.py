"""`casewright bench …`: the studies of the papers that this project builds on, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, GeneratorName, Plot

OnlySet = Annotated[str | None, typer.Option("--set", help="Only the set of this name.")]
EncoderModel = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="A sentence-transformers model's name or folder; else the packaged one.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=4, help="At most so many questions of each set.")
]
ChatModel = Annotated[
    str | None,
    typer.Option("--chat", help="Also ask a chat model, as provider:model.", metavar="NAME"),
]


app = typer.Typer(add_completion=False)


@app.command("legal")
def bench_legal(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with ALQA's qa.jsonl and pairs.jsonl, or with the multi-hop sets; or "
            "the word shipped: the domain's own cases."
        ),
    ] = Path("shipped"),
    only: OnlySet = None,
    encoder: EncoderModel = None,
    cue: Annotated[
        str | None, typer.Option(help="Also measure this text before queries, and none.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Measure answers in place of retrieval.")
    ] = False,
    generator: GeneratorName = "extractive",
    against: Annotated[
        str | None,
        typer.Option(
            help="With --answers: another encoder, by whose cases answers are compared with those "
            "by --encoder's; named as there.",
            metavar="MODEL",
        ),
    ] = None,
    limit: Limit = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Score retrieval for questions with two parent cases, or with --answers the answers.

    The first time, every case is encoded: some minutes for the three multi-hop sets.
    """
    from casewright.bench.legal.data import SHIPPED
    from casewright.stores.encoders.sources import named_encoder

    if (cue is not None) if answers else (generator != "extractive" or against is not None):
        raise InputError("--generator goes with --answers, --against too; --cue goes without.")
    place = None if str(data) == SHIPPED else data
    if answers:
        from casewright.bench.legal.answers import measure_answers
        from casewright.graph.named import EXTRACTIVE, check_generator
        from casewright.planner import chat_model

        check_generator(generator)
        model = None if generator == EXTRACTIVE else chat_model(generator)
        other = None if against is None else named_encoder(against)
        report = measure_answers(
            place, named_encoder(encoder), model, against=other, only=only, limit=limit
        )
    else:
        from casewright.bench.legal.protocol import measure_legal

        report = measure_legal(place, named_encoder(encoder), only=only, cue=cue, limit=limit)
    report.show(as_json=as_json, plot=plot)


@app.command("legal-pairs")
def bench_legal_pairs(
    output: Annotated[
        Path, typer.Option("--output", help="The file to write: pairs.jsonl beside qa.jsonl.")
    ],
    data: Annotated[
        str,
        typer.Option(
            help="ALQA's qa.jsonl, its name on Hugging Face, or the word shipped: the domain's "
            "own cases.",
            metavar="FILE",
        ),
    ] = "shipped",
    model: Annotated[
        str | None,
        typer.Option(help="The chat model that writes, as provider:model.", metavar="NAME"),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="At most so many pairs of cases.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw of the pairs.")] = 0,
    extractor: Annotated[
        str,
        typer.Option(
            help="Who extracts entities: offline, or a chat model as provider:model.",
            metavar="NAME",
        ),
    ] = "offline",
    as_json: AsJson = False,
) -> None:
    """Have a chat model write the questions of two cases each that bench legal reads.

    A reply that holds no question with its answer is skipped and counted.
    """
    from dataclasses import asdict

    from casewright.bench.legal.pair_writing import check_pairs_output, write_pairs
    from casewright.domains.legal.chat_reading import OFFLINE, check_extractor
    from casewright.planner import chat_model
    from casewright.serve.cli.output import print_json, print_table

    if model is None:
        raise InputError(
            "Questions are written by a chat model. Give --model provider:model, for example "
            "openai:gpt-4o-mini."
        )
    check_extractor(extractor, "--extractor")
    check_pairs_output(output, data)
    writer = chat_model(model)
    reader = None if extractor == OFFLINE else chat_model(extractor)
    made = asdict(write_pairs(data, output, writer, pairs=pairs, seed=seed, extractor=reader))
    if as_json:
        print_json(made)
        return
    skipped = [[f"skipped: {why}", count] for why, count in made.pop("skipped").items()]
    print_table(["pairs of cases", ""], [*map(list, made.items()), *skipped])


@app.command("feedback")
def bench_feedback(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the multi-hop sets, and scifact; without one, code alone."
        ),
    ] = None,
    only: OnlySet = None,
    encoder: EncoderModel = None,
    limit: Limit = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare relevance feedback with one search that judges as many, and with the post's loop.

    All sets take some twenty minutes, the first time ten more to encode their cases; --set and
    --limit shorten it.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    report = measure_feedback(data, named_encoder(encoder), only=only, limit=limit)
    report.show(as_json=as_json, plot=plot)


@app.command("truthfulqa")
def bench_truthfulqa(
    data: Annotated[
        Path,
        typer.Option(help="TruthfulQA's data: the folder with v1/mc_task.json.", metavar="DIR"),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="mistral for the planner that ships, smollm2 for its base, or a causal language "
            "model's name or folder.",
            metavar="NAME",
        ),
    ] = "mistral",
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    primer: Annotated[
        Path | None,
        typer.Option(
            help="The fixed primer: JSON Lines of question and answer; the paper's are the six "
            "pairs in TruthfulQA's appendix.",
            metavar="FILE",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=2, help="Demonstrations shown.")] = 6,
    limit: Annotated[
        int | None, typer.Option(min=2, help="At most so many questions, drawn at random.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Where scores are kept, so that a stopped run goes on; in Casewright's data "
            "folder by default.",
            metavar="FOLDER",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the controls.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Measure what six retrievers of demonstrations do to a model's answers (RAGSys's study).

    Some minutes on two cores with the model that ships.
    """
    from casewright.bench.truthfulqa import Study, measure_truthfulqa
    from casewright.stores import default_encoder

    study = Study(data, model, adapter, device, dtype, primer, work, k=k, limit=limit, seed=seed)
    measure_truthfulqa(study, default_encoder()).show(as_json=as_json, plot=plot)


@app.command("math24")
def bench_math24(
    data: Annotated[
        Path,
        typer.Option(
            help="The paper's puzzles and splits: the folder with cases_466.jsonl and "
            "test_splits_10x30.json.",
            metavar="DIR",
        ),
    ],
    chat: ChatModel = None,
    runs: Annotated[
        int, typer.Option(min=1, max=10, help="The first so many of the ten published runs.")
    ] = 10,
    nested: Annotated[
        bool,
        typer.Option(
            "--nested",
            help="Also train a latent whose settings each run chooses on its own training puzzles; "
            "three times as long.",
        ),
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Retrieve cases of Math-24 and answer by them, in the paper's protocol.

    Some ten minutes on two cores: each run trains its latents anew.
    """
    from casewright.bench.math24 import measure_math24

    measure_math24(data, chat, runs, nested=nested).show(as_json=as_json, plot=plot)


@app.command("backgammon")
def bench_backgammon(
    data: Annotated[
        Path,
        typer.Option(
            help="The analysed games: the folder with decisions-dev.jsonl and "
            "wildbg_positions.jsonl.",
            metavar="DIR",
        ),
    ],
    chat: ChatModel = None,
    answers: Annotated[
        int, typer.Option(min=1, help="Decisions that are answered with and without cases.")
    ] = 200,
    boards: Annotated[
        int, typer.Option(min=1, help="Boards of each renderer that are read.")
    ] = 500,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A sentence-transformers model to compare answers by, beside the packaged one.",
            metavar="NAME",
        ),
    ] = None,
    choosing: Annotated[
        bool,
        typer.Option(
            "--choosing",
            help="Ask a quarter of the training games by the others: how the latent that ships was "
            "chosen.",
        ),
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare decisions by their encoding and by latents, read boards, and answer by cases.

    Some fifteen minutes on two cores: eight latents are trained, on games that are not asked.
    """
    from casewright.bench.backgammon.measure import measure_backgammon

    measure_backgammon(
        data, chat=chat, answers=answers, boards=boards, encoder=encoder, choosing=choosing
    ).show(as_json=as_json, plot=plot)


@app.command("reaper")
def bench_reaper(
    table: Annotated[
        list[str] | None,
        typer.Option(help="1, 2, 3 or studies; several may be given, all by default."),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Keeps trainings and figures, so that the same command goes on where it was "
            "stopped; in the cache folder by default.",
            metavar="FOLDER",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of each training; the recipe's by default.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="A model that trainings start from, not trained with these tools; else the "
            "recipe's base.",
            metavar="FOLDER",
        ),
    ] = None,
    planner: Annotated[
        Path | None,
        typer.Option(help="Table 1's planner; by default the one that ships.", metavar="FOLDER"),
    ] = None,
    instructions: Annotated[
        Path | None,
        typer.Option(
            help="Generic instructions; without them, rows with a share of them say so.",
            metavar="FOLDER",
        ),
    ] = None,
    tool: Annotated[
        str, typer.Option(help="The tool, and the class, that studies leave out.", metavar="NAME")
    ] = "customer_support",
    recipe: Annotated[
        str, typer.Option(help="Of the rows' trainings: a TOML file, or one that ships.")
    ] = "reaper",
    limit: Annotated[int, typer.Option(min=1, help="Most questions of each test set.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at once, each a process.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of random weights and test sets.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print REAPER's tables at a small model's size: every row is a training, asked in four ways.

    Hours the first time; --table and --steps shorten it. Interrupted, the same command goes on.
    """
    from casewright.bench.reaper.measure import measure_reaper
    from casewright.bench.reaper.trial import TABLES, ReaperTrial, default_folder

    trial = ReaperTrial(
        tables=tuple(dict.fromkeys(table or TABLES)),
        folder=work or default_folder(),
        recipe=recipe,
        steps=steps,
        start=start,
        planner=planner,
        instructions=instructions,
        tool=tool,
        limit=limit,
        jobs=jobs,
        seed=seed,
    )
    try:
        report = measure_reaper(trial)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on.", err=True)
        raise
    report.show(as_json=as_json, plot=plot)
