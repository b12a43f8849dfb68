"""`casewright finetune encoder`: the encoder, trained on the cases of one's own domain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.bench.options import OnlySet
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json, print_table

if TYPE_CHECKING:
    from casewright.finetune.encoder_training import Pair

app = Typer(add_completion=False)


@app.command("encoder")
def finetune_encoder(
    target: Annotated[Path, Option("--output", help="A new folder for the encoder.")],
    domain: Annotated[
        str | None, Option("--domain", "-d", help="A domain's name, or FILE.py:NAME.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(help="Or a folder with sets of bench legal and feedback: their cases alone."),
    ] = None,
    only: OnlySet = None,
    epochs: Annotated[int, Option(min=1, help="Passes over the pairs of texts.")] = 2,
    pairs: Annotated[int | None, Option(min=8, help="At most so many, drawn at random.")] = None,
    seed: Annotated[int, Option(min=0, help="Of every draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the packaged encoder on the cases of a domain, without any question or label.

    Search by it with --encoder FOLDER; what it is worth says bench encoder --against FOLDER.
    """
    from casewright.finetune.encoder_training import EncoderSettings, train_encoder
    from casewright.finetune.training.run import check_writable

    if (domain is None) == (data is None):
        raise InputError("Give --domain or --data: the cases to train the encoder on.")
    if target.exists():
        raise InputError(f"--output {target} is there already. Give a new folder.")
    check_writable(target)
    settings = EncoderSettings(epochs=epochs, pairs=pairs, seed=seed)
    texts = list(dict.fromkeys(_domain_pairs(domain) if domain else _set_pairs(data, only)))
    facts = {"folder": str(target), **train_encoder(texts, target, settings)}
    if as_json:
        print_json(facts)
    else:
        print_table(["setting", "value"], [[name, str(value)] for name, value in facts.items()])


def _domain_pairs(name: str) -> Iterator[Pair]:
    from casewright.domains import find_domain
    from casewright.finetune.encoder_training import case_pairs
    from casewright.stores import default_encoder
    from casewright.stores.paths import data_folder

    domain = find_domain(name)
    opened = domain.open(data_folder() / domain.name, default_encoder(), False)
    try:
        for store in opened.stores.values():
            if store is not opened.plan_cases:
                yield from case_pairs(store.schema, store.all())
    finally:
        opened.close()


def _set_pairs(data: Path | None, only: str | None) -> Iterator[Pair]:
    from casewright.bench.encoder import find_data_sets
    from casewright.domains.legal.cases import qa_schema
    from casewright.finetune.encoder_training import case_pairs
    from casewright.finetune.judge_sets.sets import FeedbackSet, schema_of
    from casewright.stores import default_encoder

    encoder = default_encoder()
    for each in find_data_sets(data, only, None):
        feedback = isinstance(each, FeedbackSet)
        schema = schema_of(each.name, each.kind, encoder) if feedback else qa_schema(encoder)
        yield from case_pairs(schema, each.cases)
