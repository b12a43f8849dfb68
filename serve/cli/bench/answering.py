"""Commands of `casewright bench` that measure retrieval and generated answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.serve.cli.bench.options import OnlySet, SetLimit
from casewright.serve.cli.bench.report import report_command
from casewright.serve.cli.options import EncoderName
from casewright.serve.cli.output import check_new_file

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)
KeepFile = Annotated[
    Path | None,
    Option(
        help="Store the answers in this file, from which a later run continues.", metavar="FILE"
    ),
]


@report_command(app, "feedback")
def bench_feedback(
    data: Annotated[
        Path | None, Option(help="Folder of multi-hop sets and scifact; if none, only code sets.")
    ] = None,
    only: OnlySet = None,
    encoder: EncoderName = None,
    limit: SetLimit = None,
) -> Report:
    """Compare relevance feedback with one search for as many cases, and with a published loop.

    All sets take some twenty minutes, ten more the first time; --set and --limit save time.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    return measure_feedback(data, named_encoder(encoder), only=only, limit=limit)


@report_command(app, "documents", plots=False)
def bench_documents(
    data: Annotated[
        Path,
        Option(
            help="A folder with the file questions.jsonl and folders of documents (trees). A line "
            "has tree and question; if the question is not off-topic, also file and words."
        ),
    ],
    generator: Annotated[list[str] | None, Option(help="See ask --generator; repeatable.")] = None,
    encoder: EncoderName = None,
    fit: Annotated[
        Path | None, Option(help="Train the classifier that refuses questions, and save it here.")
    ] = None,
) -> Report:
    """Answer questions about documents; count right answers, right citations and refusals.

    The first run encodes every tree, later runs encode only changed files.
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


@report_command(app, "answers", plots=False)
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
    limit: Annotated[int, Option(min=1, help="Number of questions, all sets together.")] = 200,
    keep: KeepFile = None,
    claims: Annotated[
        Path | None,
        Option(help="SciFact's folder; its claims test the check of answers.", metavar="DIR"),
    ] = None,
) -> Report:
    """Answer questions from numbered evidence; measure supported sentences, facts, length, time.

    A person may label the sentences of an answer in --keep: add "supported": [true, false, …].
    """
    from casewright.bench.answers import measure_answers
    from casewright.graph.named import EXTRACTIVE
    from casewright.stores.encoders.sources import named_encoder

    check_new_file("--keep", keep)
    names = generator or [EXTRACTIVE]
    return measure_answers(data, named_encoder(encoder), names, limit, keep=keep, claims=claims)


@report_command(app, "injection", plots=False)
def bench_injection(
    model: Annotated[str, Option(help="provider:model, or local:smollm2.")] = "local:smollm2",
    keep: KeepFile = None,
) -> Report:
    """Let a chat model answer from 100 hostile texts, or judge them, with and without defences."""
    from casewright.bench.injection import measure_injection

    check_new_file("--keep", keep)
    return measure_injection(model, keep)
