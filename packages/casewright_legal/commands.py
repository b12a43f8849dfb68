"""The commands `casewright bench legal` and `casewright bench encoder`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from casewright.errors import InputError
from casewright.serve.cli.bench.options import OnlySet, SetLimit
from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import AsJson, EncoderName, Plot


def bench_encoder(
    data: Annotated[Path | None, Option(help="A folder for bench legal or bench feedback.")] = None,
    against: Annotated[
        str | None, Option(help="The other encoder; by default, the integer weights.")
    ] = None,
    only: OnlySet = None,
    limit: SetLimit = None,
    texts: Annotated[int, Option(min=1, help="Number of texts to time the encoders with.")] = 512,
    as_json: AsJson = False,
) -> None:
    """Compare the packaged encoder with its integer weights or another encoder.

    Retrieval and speed are measured; without --data, on the shipped legal cases and code.
    """
    from casewright_legal.bench_encoder import measure_encoder

    report = measure_encoder(data, against=against, only=only, limit=limit, texts=texts)
    show(report, as_json=as_json)


def bench_legal(
    data: Annotated[
        Path,
        Option(
            help="shipped (the domain's cases), or a folder with the multi-hop sets or with "
            "ALQA's qa.jsonl and pairs.jsonl."
        ),
    ] = Path("shipped"),
    only: OnlySet = None,
    encoder: EncoderName = None,
    answers: Annotated[bool, Option("--answers", help="Measure answers, not retrieval.")] = False,
    generator: Annotated[
        str, Option(help="With --answers: extractive, provider:model or local:smollm2.")
    ] = "extractive",
    against: Annotated[
        str | None, Option(help="With --answers: a second encoder, which also finds cases.")
    ] = None,
    limit: SetLimit = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Score the search for the two cases that each question needs; with --answers, score answers.

    The first run encodes every case: some minutes for the three multi-hop sets.
    """
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.planner import chat_model
    from casewright.stores.encoders.sources import named_encoder
    from casewright_legal.bench_answers import measure_answers
    from casewright_legal.bench_retrieval import measure_legal
    from casewright_legal.bench_sets import SHIPPED

    if not answers and (generator != EXTRACTIVE or against is not None):
        raise InputError("--generator and --against need --answers.")
    folder = None if str(data) == SHIPPED else data
    if answers:
        check_generator(generator)
        model = None if generator == EXTRACTIVE else chat_model(generator)
        second = None if against is None else named_encoder(against)
        first = named_encoder(encoder)
        report = measure_answers(folder, first, model, against=second, only=only, limit=limit)
    else:
        report = measure_legal(folder, named_encoder(encoder), only=only, limit=limit)
    show(report, as_json=as_json, plot=plot)
