"""`casewright bench …`: commands for the studies of the papers behind this project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.bench.options import OnlySet, SetLimit, WorkFolder
from casewright.serve.cli.bench.report import measures
from casewright.serve.cli.options import Adapter, Device, DType, EncoderName
from casewright.serve.cli.output import check_new_file

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)
Keep = Annotated[
    Path | None,
    Option(
        help="Store the answers in this file, from which a later run continues.", metavar="FILE"
    ),
]


@measures(app, "legal")
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
) -> Report:
    """Score retrieval for questions with two parent cases, or with --answers the answers.

    The first run encodes every case: some minutes for the three multi-hop sets.
    """
    from casewright.bench.legal.answers import measure_answers
    from casewright.bench.legal.data import SHIPPED
    from casewright.bench.legal.protocol import measure_legal
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.planner import chat_model
    from casewright.stores.encoders.sources import named_encoder

    if not answers and (generator != EXTRACTIVE or against is not None):
        raise InputError("--generator and --against need --answers.")
    folder = None if str(data) == SHIPPED else data
    if not answers:
        return measure_legal(folder, named_encoder(encoder), only=only, limit=limit)
    check_generator(generator)
    model = None if generator == EXTRACTIVE else chat_model(generator)
    first, other = named_encoder(encoder), None if against is None else named_encoder(against)
    return measure_answers(folder, first, model, against=other, only=only, limit=limit)


@measures(app, "encoder", plots=False)
def bench_encoder(
    data: Annotated[Path | None, Option(help="A folder with the sets of the two benches.")] = None,
    against: Annotated[
        str | None, Option(help="Another encoder; the integer weights by default.")
    ] = None,
    only: OnlySet = None,
    limit: SetLimit = None,
    texts: Annotated[int, Option(min=1, help="Texts to measure the speed with.")] = 512,
) -> Report:
    """Compare the packaged encoder with its integer weights or another encoder.

    The figures are retrieval and speed; by default on the shipped legal cases and code.
    """
    from casewright.bench.encoder import measure_encoder

    return measure_encoder(data, against=against, only=only, limit=limit, texts=texts)


@measures(app, "feedback")
def bench_feedback(
    data: Annotated[
        Path | None, Option(help="A folder with the multi-hop sets and scifact; else only code.")
    ] = None,
    only: OnlySet = None,
    encoder: EncoderName = None,
    limit: SetLimit = None,
) -> Report:
    """Compare relevance feedback with a single search of the same size, and with RepoGPT's loop.

    Some twenty minutes for all sets, ten more the first time; --set and --limit shorten it.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    return measure_feedback(data, named_encoder(encoder), only=only, limit=limit)


@measures(app, "documents", plots=False)
def bench_documents(
    data: Annotated[
        Path,
        Option(
            help="A folder with trees of documents and questions.jsonl: tree, question, file, "
            "words; without file and words, off-topic."
        ),
    ],
    generator: Annotated[list[str] | None, Option(help="See ask --generator; repeatable.")] = None,
    encoder: EncoderName = None,
    fit: Annotated[
        Path | None, Option(help="The file for a judge of sufficiency trained on the questions.")
    ] = None,
) -> Report:
    """Answer questions about documents: right and rightly cited, refused, length of answers.

    The first run encodes every tree, later runs encode changed files.
    """
    from casewright.bench.documents import fit as train_judge
    from casewright.bench.documents import measure_documents
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.stores.encoders.sources import named_encoder

    names = generator or [EXTRACTIVE]
    for name in names:
        check_generator(name)
    if fit is not None:
        check_new_file("--fit", fit)
        train_judge(data, named_encoder(encoder)).save(fit)
    return measure_documents(data, named_encoder(encoder), names)


@measures(app, "answers", plots=False)
def bench_answers(
    data: Annotated[Path, Option(help="A folder with the multi-hop sets.")],
    generator: Annotated[
        list[str] | None,
        Option(
            help="extractive, provider:model, local:smollm2, or local:smollm2+grammar, which can "
            "only cite existing evidence; repeatable."
        ),
    ] = None,
    encoder: EncoderName = None,
    limit: Annotated[int, Option(min=1, help="Questions, the sets in turn.")] = 200,
    keep: Keep = None,
    claims: Annotated[
        Path | None,
        Option(help="SciFact's folder, to test the check on its claims.", metavar="DIR"),
    ] = None,
) -> Report:
    """Answer questions from numbered evidence: sentences that it supports, facts, length, time.

    A person may add "supported": [true, false, …] to a kept answer, a label for each sentence.
    """
    from casewright.bench.answers import measure_answers
    from casewright.graph.named import EXTRACTIVE
    from casewright.stores.encoders.sources import named_encoder

    check_new_file("--keep", keep)
    names = generator or [EXTRACTIVE]
    return measure_answers(data, named_encoder(encoder), names, limit, keep=keep, claims=claims)


@measures(app, "injection", plots=False)
def bench_injection(
    model: Annotated[str, Option(help="provider:model, or local:smollm2.")] = "local:smollm2",
    keep: Keep = None,
) -> Report:
    """Let a chat model answer and judge with 100 hostile texts, with and without the defences."""
    from casewright.bench.injection import measure_injection

    check_new_file("--keep", keep)
    return measure_injection(model, keep)


@measures(app, "truthfulqa")
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
) -> Report:
    """Measure a model's answers with six retrievers of demonstrations (RAGSys's study).

    Some minutes on two cores with the model that ships.
    """
    from casewright.bench.truthfulqa import Study, measure_truthfulqa
    from casewright.stores import default_encoder

    study = Study(data, model, adapter, device, dtype, primer, work, k=k, limit=limit, seed=seed)
    return measure_truthfulqa(study, default_encoder())
