"""`casewright bench …`: commands on retrieval and on generated answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.serve.cli.bench.options import OnlySet, SetLimit
from casewright.serve.cli.bench.report import measures
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


@measures(app, "feedback")
def bench_feedback(
    data: Annotated[
        Path | None, Option(help="A folder with the multi-hop sets and scifact; by default, code.")
    ] = None,
    only: OnlySet = None,
    encoder: EncoderName = None,
    limit: SetLimit = None,
) -> Report:
    """Compare relevance feedback with a single search of the same size, and with RepoGPT's loop.

    All sets take some twenty minutes, ten more the first time; --set and --limit shorten it.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    return measure_feedback(data, named_encoder(encoder), only=only, limit=limit)


@measures(app, "documents", plots=False)
def bench_documents(
    data: Annotated[
        Path,
        Option(
            help="A folder with trees of documents and questions.jsonl: tree, question, file and "
            "words (no file and words if off-topic)."
        ),
    ],
    generator: Annotated[list[str] | None, Option(help="See ask --generator; repeatable.")] = None,
    encoder: EncoderName = None,
    fit: Annotated[
        Path | None, Option(help="Train a judge of sufficiency on the questions, and save it here.")
    ] = None,
) -> Report:
    """Answer questions about documents; count right, rightly cited and refused answers.

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
    limit: Annotated[int, Option(min=1, help="Number of questions, of all sets.")] = 200,
    keep: KeepFile = None,
    claims: Annotated[
        Path | None,
        Option(help="SciFact's folder, to test the check on its claims.", metavar="DIR"),
    ] = None,
) -> Report:
    """Answer questions from numbered evidence; measure supported sentences, facts, length, time.

    A person may label the sentences of a kept answer: add "supported": [true, false, …].
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
    keep: KeepFile = None,
) -> Report:
    """Let a chat model answer and judge with 100 hostile texts, with and without defences."""
    from casewright.bench.injection import measure_injection

    check_new_file("--keep", keep)
    return measure_injection(model, keep)
