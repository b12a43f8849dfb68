"""`casewright bench truthfulqa`: RAGSys's study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.options import Adapter, AsJson, Device, DType, Plot


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("truthfulqa")(bench_truthfulqa)


def bench_truthfulqa(
    data: Annotated[
        Path,
        typer.Option(help="TruthfulQA's data: the folder with v1/mc_task.json.", metavar="DIR"),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="mistral for the one that ships, or a causal language model's name or folder.",
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
    published: Annotated[
        Path | None,
        typer.Option(
            help="The paper's figures, to stand beside: JSON, model to retriever to DPO, MC1, "
            "MC2, MC3.",
            metavar="FILE",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=2, help="Demonstrations shown.")] = 6,
    limit: Annotated[
        int | None, typer.Option(min=2, help="At most so many questions, the first ones.")
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
    from casewright.bench.truthfulqa.study import Study, measure_truthfulqa
    from casewright.stores import default_encoder

    study = Study(
        data, model, adapter, device, dtype, primer, published, work, k=k, limit=limit, seed=seed
    )
    measure_truthfulqa(study, default_encoder()).show(as_json=as_json, plot=plot)
