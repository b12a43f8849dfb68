"""`casewright finetune encoder`, which trains the packaged encoder on a domain's cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Seed
from casewright.serve.cli.output import print_facts

if TYPE_CHECKING:
    from casewright.finetune.encoder_training import Pair

app = Typer(add_completion=False)


@app.command("encoder")
def finetune_encoder(
    target: Annotated[Path, Option("--output", help="A new folder for the encoder.")],
    domain: Annotated[
        str, Option("--domain", "-d", help="The domain with the cases: a name or FILE.py:NAME.")
    ],
    epochs: Annotated[int, Option(min=1, help="Passes over the pairs of texts of each case.")] = 2,
    pairs: Annotated[int | None, Option(min=8, help="Limit of pairs, drawn at random.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train the packaged encoder on the cases of a domain, without any question or label.

    Use the encoder with --encoder FOLDER; test it with bench encoder --against FOLDER.
    """
    from casewright.finetune.encoder_training import EncoderSettings, train_encoder
    from casewright.finetune.training.run import check_writable

    if target.exists():
        raise InputError(f"--output {target} is there already. Give a new folder.")
    check_writable(target)
    settings = EncoderSettings(epochs=epochs, pairs=pairs, seed=seed)
    unique_pairs = list(dict.fromkeys(_domain_pairs(domain)))
    facts = {"folder": str(target), **train_encoder(unique_pairs, target, settings)}
    print_facts(facts, as_json=as_json)


def _domain_pairs(name: str) -> Iterator[Pair]:
    """Yield pairs of texts of the same case, from all stores of a domain but its plan cases."""
    from casewright.domains import find_domain
    from casewright.finetune.encoder_training import case_pairs
    from casewright.serve.session.defaults import open_stores

    with closing(open_stores(find_domain(name))) as open_domain:
        for store in open_domain.stores.values():
            if store is not open_domain.plan_cases:
                yield from case_pairs(store.schema, store.all())
