"""`casewright bench …`: the studies of the papers that this project builds on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.bench.options import EncoderModel, OnlySet, SetLimit, WorkFolder
from casewright.serve.cli.bench.report import measures
from casewright.serve.cli.options import Adapter, AsJson, Device, DType
from casewright.serve.cli.output import print_json, print_table

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)


@measures(app, "legal")
def bench_legal(
    data: Annotated[
        Path,
        Option(
            help="A folder with ALQA's qa.jsonl and pairs.jsonl or the multi-hop sets; or shipped, "
            "the domain's own cases."
        ),
    ] = Path("shipped"),
    only: OnlySet = None,
    encoder: EncoderModel = None,
    cue: Annotated[
        str | None, Option(help="Also measure this text before queries, and none.")
    ] = None,
    answers: Annotated[
        bool, Option("--answers", help="Measure answers in place of retrieval.")
    ] = False,
    generator: Annotated[
        str, Option(help="extractive, or a chat model as provider:model.", metavar="NAME")
    ] = "extractive",
    against: Annotated[
        str | None, Option(help="With --answers: another encoder to compare with.", metavar="MODEL")
    ] = None,
    limit: SetLimit = None,
) -> Report:
    """Score retrieval for questions with two parent cases, or with --answers the answers.

    The first time, every case is encoded: some minutes for the three multi-hop sets.
    """
    from casewright.bench.legal.answers import measure_answers
    from casewright.bench.legal.data import SHIPPED
    from casewright.bench.legal.protocol import measure_legal
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.planner import chat_model
    from casewright.stores.encoders.sources import named_encoder

    if (cue is not None) if answers else (generator != EXTRACTIVE or against is not None):
        raise InputError("--generator goes with --answers, --against too; --cue goes without.")
    folder = None if str(data) == SHIPPED else data
    if not answers:
        return measure_legal(folder, named_encoder(encoder), only=only, cue=cue, limit=limit)
    check_generator(generator)
    model = None if generator == EXTRACTIVE else chat_model(generator)
    other = None if against is None else named_encoder(against)
    return measure_answers(
        folder, named_encoder(encoder), model, against=other, only=only, limit=limit
    )


@app.command("legal-pairs")
def bench_legal_pairs(
    output: Annotated[Path, Option(help="The file to write: pairs.jsonl beside qa.jsonl.")],
    data: Annotated[
        str, Option(help="ALQA's qa.jsonl, its name on Hugging Face, or shipped.", metavar="FILE")
    ] = "shipped",
    model: Annotated[
        str | None, Option(help="The writing model, as provider:model.", metavar="NAME")
    ] = None,
    pairs: Annotated[int, Option(min=1, help="At most so many pairs of cases.")] = 50,
    seed: Annotated[int, Option(min=0, help="Of the draw of the pairs.")] = 0,
    extractor: Annotated[
        str, Option(help="Who extracts entities: offline, or provider:model.", metavar="NAME")
    ] = "offline",
    as_json: AsJson = False,
) -> None:
    """Have a chat model write the questions of two cases each that bench legal reads.

    A reply that holds no question with its answer is skipped and counted.
    """
    from dataclasses import asdict

    from casewright.bench.legal.pair_writing import check_pairs_output, write_pairs
    from casewright.domains.legal.chat_entities import OFFLINE, check_extractor
    from casewright.planner import chat_model

    if model is None:
        raise InputError(
            "Questions are written by a chat model. Give --model provider:model, for example "
            "openai:gpt-4o-mini."
        )
    check_extractor(extractor, "--extractor")
    check_pairs_output(output, data)
    writer = chat_model(model)
    reader = None if extractor == OFFLINE else chat_model(extractor)
    counts = asdict(write_pairs(data, output, writer, pairs=pairs, seed=seed, extractor=reader))
    if as_json:
        print_json(counts)
        return
    skipped = [[f"skipped: {why}", count] for why, count in counts.pop("skipped").items()]
    print_table(["pairs of cases", ""], [*map(list, counts.items()), *skipped])


@measures(app, "encoder", plots=False)
def bench_encoder(
    data: Annotated[
        Path | None, Option(help="A folder with sets of bench legal and feedback.")
    ] = None,
    only: OnlySet = None,
    limit: SetLimit = None,
    texts: Annotated[int, Option(min=1, help="Texts that the speed is measured by.")] = 512,
) -> Report:
    """Compare the packaged encoder in float32 with its integer weights: retrieval and speed.

    Without --data the shipped legal cases and code are searched.
    """
    from casewright.bench.encoder import measure_encoder

    return measure_encoder(data, only=only, limit=limit, texts=texts)


@measures(app, "feedback")
def bench_feedback(
    data: Annotated[
        Path | None, Option(help="A folder with the multi-hop sets and scifact; else code alone.")
    ] = None,
    only: OnlySet = None,
    encoder: EncoderModel = None,
    limit: SetLimit = None,
) -> Report:
    """Compare relevance feedback with one search that judges as many, and with the post's loop.

    Some twenty minutes for all sets, ten more the first time; --set and --limit shorten it.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    return measure_feedback(data, named_encoder(encoder), only=only, limit=limit)


@measures(app, "truthfulqa")
def bench_truthfulqa(
    data: Annotated[Path, Option(help="The folder with v1/mc_task.json.", metavar="DIR")],
    model: Annotated[
        str,
        Option(
            help="mistral, smollm2 (its base), or a language model's name or folder.",
            metavar="NAME",
        ),
    ] = "mistral",
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    primer: Annotated[
        Path | None, Option(help="The fixed primer, JSON Lines: question, answer.", metavar="FILE")
    ] = None,
    k: Annotated[int, Option("-k", min=2, help="Demonstrations shown.")] = 6,
    limit: Annotated[
        int | None, Option(min=2, help="At most so many questions, drawn at random.")
    ] = None,
    work: WorkFolder = None,
    seed: Annotated[int, Option(min=0, help="Of the controls.")] = 0,
) -> Report:
    """Measure what six retrievers of demonstrations do to a model's answers (RAGSys's study).

    Some minutes on two cores with the model that ships.
    """
    from casewright.bench.truthfulqa import Study, measure_truthfulqa
    from casewright.stores import default_encoder

    study = Study(data, model, adapter, device, dtype, primer, work, k=k, limit=limit, seed=seed)
    return measure_truthfulqa(study, default_encoder())
