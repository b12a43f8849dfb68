"""`casewright finetune parser`: the plan parser, trained on toolboxes of many fields."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.serve.cli.options import AsJson

if TYPE_CHECKING:
    from casewright.finetune.parser.brought_along import BroughtAlong
    from casewright.finetune.parser.episodes import Source

#: Episodes of a domain's queries in each pass.
DOMAIN_PARTS = 30
#: Plan cases with which a parser is measured, and the share of messages that may be asked back.
CASES, ASKED_BACK = (0, 5), 0.1


app = typer.Typer(add_completion=False)


@app.command("parser")
def finetune_parser(
    target: Annotated[
        Path,
        typer.Option(
            "--output",
            help="The folder to write the parser to. A training that was stopped there goes on.",
            metavar="FOLDER",
        ),
    ],
    minutes: Annotated[float, typer.Option(min=0, help="How long it is trained.")] = 60,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Start from the weights of a parser that was trained before.",
            metavar="FOLDER",
        ),
    ] = None,
    frozen: Annotated[
        int,
        typer.Option(
            min=0, max=6, help="How many of the encoder's six layers stay as they are, the lowest."
        ),
    ] = 6,
    rate: Annotated[float, typer.Option(min=0, help="The highest learning rate.")] = 6e-4,
    domain: Annotated[
        str | None,
        typer.Option(help="Also learn from a domain's annotated queries, with its tools."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights and episodes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the plan parser, for which the toolbox is an input, on the corpus of toolboxes.

    Toolboxes for validation say how good it is and how sure it may be. Ctrl-C stops it; the same
    command goes on from the last checkpoint.
    """
    import random

    from casewright.finetune.corpus import read_corpus, training_toolboxes
    from casewright.finetune.parser.measuring import asking, fitted, planned, scored, shares
    from casewright.finetune.parser.sources import digest, drawing, parts_of
    from casewright.finetune.parser.training import ParserSettings, train_parser, trained_parts
    from casewright.planner.parser.runtime import open_runtime
    from casewright.planner.parser.weights import ParserCard, read_card, save_parser
    from casewright.serve.cli.output import print_json, print_table

    others, held = [], []
    if domain is not None:
        source, bringing = _sources(domain)
        others = [*parts_of(source, DOMAIN_PARTS, random.Random(seed)), *bringing.training]
        held = bringing.held
    settings = ParserSettings(minutes=minutes, frozen=frozen, rate=rate, seed=seed)
    taught = training_toolboxes()
    network = train_parser(drawing(taught, others), settings, target, start)
    # What is measured is what is kept: the card follows.
    save_parser(target, trained_parts(network), ParserCard())
    runtime = open_runtime(target)
    boxes = read_corpus("validation")
    figures: dict[str, float] = {}
    found = []
    for cases in CASES:
        own = list(scored(runtime, boxes, cases, seed))
        figures |= shares(own, f"{cases} cases")
        found += own
    if held:
        brought = [
            one
            for query in held
            for one in planned(runtime, query.record.request(source.toolbox).toolbox, [], [query])
        ]
        figures |= shares(brought, "tools that a message brings along")
    curve = fitted(found)
    told: dict[str, Any] = {
        "corpus": digest(taught),
        "domain": domain,
        "from": read_card(start).training if start else None,
        "minutes": minutes,
        "frozen": frozen,
        "rate": rate,
        "seed": seed,
        **figures,
    }
    card = replace(curve, asks_below=asking(found, curve, ASKED_BACK), training=told)
    save_parser(target, trained_parts(network), card)
    if as_json:
        print_json({"folder": str(target), **told})
    else:
        print_table(["figure", "value"], [[name, str(value)] for name, value in told.items()])


def _sources(domain: str) -> tuple[Source, BroughtAlong]:
    """Return a domain's tools, pools and messages, and apart those that bring tools along."""
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.parser.brought_along import brought_along
    from casewright.finetune.parser.episodes import Source
    from casewright.serve.cli.finetune.ingredients import ingredients
    from casewright.stores import default_encoder

    read = ingredients(DataSection(domain=domain), default_encoder())
    alone = [q for q in read.queries if not q.record.tools_extra and not q.record.tools_removed]
    source = Source(domain, read.toolbox, read.pools, alone)
    return source, brought_along(domain, read.toolbox, read.queries)
