"""`casewright finetune parser`: the plan parser, trained on toolboxes of many fields."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.serve.options import AsJson

if TYPE_CHECKING:
    from casewright.finetune.parser.episodes import Source

#: Episodes of a domain's queries in each pass.
DOMAIN_PARTS = 30
#: Plan cases with which a parser is measured, and the share of messages that may be asked back.
CASES, ASKED_BACK = (0, 5), 0.1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("parser")(finetune_parser)


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
    from casewright.finetune.parser.measuring import asking, fitted, scored
    from casewright.finetune.parser.sources import digest, drawing, parts_of
    from casewright.finetune.parser.training import ParserSettings, train_parser, trained_parts
    from casewright.planner.parser.weights import save_parser
    from casewright.serve.output import print_json, print_table

    others = [] if domain is None else parts_of(_source(domain), DOMAIN_PARTS, random.Random(seed))
    settings = ParserSettings(minutes=minutes, frozen=frozen, rate=rate, seed=seed)
    taught = training_toolboxes()
    network = train_parser(drawing(taught, others), settings, target, start)
    from casewright.planner.parser.runtime_network import ParserRuntime, parser_tokenizer

    runtime = ParserRuntime(network, parser_tokenizer())
    boxes = read_corpus("validation")
    figures: dict[str, float] = {}
    found = []
    for cases in CASES:
        own = list(scored(runtime, boxes, cases, seed))
        figures[f"right tools, {cases} cases"] = round(sum(s.tools for s in own) / len(own), 4)
        figures[f"whole plans, {cases} cases"] = round(sum(s.whole for s in own) / len(own), 4)
        found += own
    curve = fitted(found)
    told: dict[str, Any] = {
        "corpus": digest(taught),
        "domain": domain,
        "from": str(start) if start else None,
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


def _source(domain: str) -> Source:
    """Return a domain's tools, pools and queries; those with tools of their own are left out."""
    from casewright.finetune.parser.episodes import Source
    from casewright.finetune.recipe.data_section import DataSection
    from casewright.serve.finetune_ingredients import ingredients
    from casewright.stores import default_encoder

    read = ingredients(DataSection(domain=domain), default_encoder())
    alone = [q for q in read.queries if not q.record.tools_extra and not q.record.tools_removed]
    return Source(domain, read.toolbox, read.pools, alone)
