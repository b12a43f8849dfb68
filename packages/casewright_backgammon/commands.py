"""`casewright bench backgammon`, `finetune backgammon` and `finetune backgammon-cases`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import AsJson, Plot
from casewright_mcbr.commands import ChatModel, OutputFolder, check_folder, print_training_figures

AnalysedGames = Annotated[
    Path,
    typer.Option(
        help="The analysed games: the folder with decisions-dev.jsonl and wildbg_positions.jsonl.",
        metavar="DIR",
    ),
]


def bench_backgammon(
    data: AnalysedGames,
    chat: ChatModel = None,
    answers: Annotated[
        int, typer.Option(min=1, help="Number of decisions to answer with and without cases.")
    ] = 200,
    boards: Annotated[
        int, typer.Option(min=1, help="Number of boards to read for each renderer.")
    ] = 500,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A second sentence-transformers model that compares answers and analyses.",
            metavar="NAME",
        ),
    ] = None,
    choosing: Annotated[
        bool,
        typer.Option(
            "--choosing",
            help="Take the queries from a quarter of the training games, and the cases from the "
            "other training games; the shipped network was selected with this option.",
        ),
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Measure board recognition, answers with cases, and retrieval by encodings or latents.

    About fifteen minutes on one core. Trains eight networks, on other games than those of the
    queries.
    """
    from casewright_backgammon.bench import measure_backgammon

    report = measure_backgammon(
        data, chat=chat, answers=answers, boards=boards, encoder=encoder, choosing=choosing
    )
    show(report, as_json=as_json, plot=plot)


def finetune_backgammon(
    data: AnalysedGames,
    target: OutputFolder,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the training.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the board reader, and the network whose latent vectors compare decisions.

    About thirty-five minutes on one core. Prints the figures of the new and the shipped networks.
    """
    from casewright_backgammon.latent import NETWORK_FILE
    from casewright_backgammon.training import train_backgammon
    from casewright_mcbr.training import read_figures

    check_folder(target)
    # Read before the training, which overwrites this file if the output folder is the same.
    shipped_figures = read_figures(NETWORK_FILE.parent)
    figures = train_backgammon(target, data, seed=seed)
    print_training_figures(figures, shipped_figures, target, as_json=as_json)


def finetune_backgammon_cases(
    target: Annotated[
        Path,
        typer.Option("--output", help="The JSON Lines file to write to.", metavar="FILE"),
    ],
    decisions: Annotated[int, typer.Option(min=1, help="Number of decisions.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of dice rolls and plays.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Let GNU Backgammon play against itself, and write the decisions as a case base.

    Needs the program gnubg. 2,000 decisions take about ten minutes on one core.
    """
    from casewright.serve.cli.output import print_json, print_table
    from casewright_backgammon.case_base import generate_decisions, write_case_base
    from casewright_backgammon.engine import GnuBackgammon

    if target.is_dir():
        raise InputError(f"--output {target} is a folder. Give the path of a file.")
    generated = generate_decisions(GnuBackgammon(), decisions, seed)
    write_case_base(target, generated)
    losses = [decision.equity_loss(decision.made_or_best_rank) for decision in generated]
    best_count = sum(decision.made_or_best_rank == 0 for decision in generated)
    figures = {
        "decisions": len(generated),
        "games": len({decision.game for decision in generated}),
        "best play made": round(best_count / len(generated), 3),
        "mean equity lost": round(sum(losses) / len(generated), 4),
    }
    if as_json:
        print_json({"file": str(target), **figures})
    else:
        print_table(["figure", "value"], [list(row) for row in figures.items()], str(target))
