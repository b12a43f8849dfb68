"""`casewright bench math24` and `casewright finetune math24`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import AsJson, Plot
from casewright_mcbr.commands import ChatModel, OutputFolder, check_folder, print_training_figures


def bench_math24(
    data: Annotated[
        Path,
        typer.Option(
            help="The folder with the paper's puzzles and splits: cases_466.jsonl and "
            "test_splits_10x30.json.",
            metavar="DIR",
        ),
    ],
    chat: ChatModel = None,
    runs: Annotated[
        int, typer.Option(min=1, max=10, help="How many of the ten published runs to measure.")
    ] = 10,
    nested: Annotated[
        bool,
        typer.Option(
            "--nested",
            help="Also train a latent network with settings that are chosen on each run's training "
            "puzzles. The bench then takes three times as long.",
        ),
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Measure retrieval and answers for Math-24, by the paper's protocol.

    Takes about ten minutes on two cores, since each run trains its own networks.
    """
    from casewright_math24.bench import measure_math24

    show(measure_math24(data, chat, runs, nested=nested), as_json=as_json, plot=plot)


def finetune_math24(
    target: OutputFolder,
    steps: Annotated[
        int, typer.Option(min=1, help="Training steps of the card reader, 64 images each.")
    ] = 1600,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of both trainings.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the reader of Math-24 cards, and the network that computes latents to compare cards.

    Takes about ten minutes on one core. Prints the figures of the new and the shipped networks.
    """
    from casewright_math24.latent import LATENT_WEIGHTS
    from casewright_math24.training import train_math24
    from casewright_mcbr.training import read_figures

    check_folder(target)
    # The shipped figures are read first: the training replaces them if ``target`` is their folder.
    shipped_figures = read_figures(LATENT_WEIGHTS.parent)
    figures = train_math24(target, seed=seed, steps=steps)
    print_training_figures(figures, shipped_figures, target, as_json=as_json)
