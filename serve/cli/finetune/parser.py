"""`casewright finetune parser` and `adapt`: the plan parser, trained for all tools or for yours."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.serve.cli.options import AsJson

if TYPE_CHECKING:
    from casewright.finetune.parser.episodes import BroughtAlong, Source


#: Episodes of a domain's queries in each pass.
DOMAIN_PARTS = 30
#: Plan cases with which a parser is measured, and the share of messages that may be asked back.
CASES, ASKED_BACK = (0, 5), 0.1


app = typer.Typer(add_completion=False)
ParserFolder = Annotated[
    Path,
    typer.Option(
        "--output",
        help="The folder to write the parser to. A training that was stopped there goes on.",
        metavar="FOLDER",
    ),
]


@app.command("parser")
def finetune_parser(
    target: ParserFolder,
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
    from casewright.finetune.parser.episodes import digest, drawing, parts_of
    from casewright.finetune.parser.measuring import asking, fitted, planned, scored, shares
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
    results = []
    for cases in CASES:
        own = list(scored(runtime, boxes, cases, seed))
        figures |= shares(own, f"{cases} cases")
        results += own
    if held:
        brought = [
            item
            for query in held
            for item in planned(runtime, query.record.request(source.toolbox).toolbox, [], [query])
        ]
        figures |= shares(brought, "tools that a message brings along")
    curve = fitted(results)
    facts: dict[str, Any] = {
        "corpus": digest(taught),
        "domain": domain,
        "from": read_card(start).training if start else None,
        "minutes": minutes,
        "frozen": frozen,
        "rate": rate,
        "seed": seed,
        **figures,
    }
    card = replace(curve, asks_below=asking(results, curve, ASKED_BACK), training=facts)
    save_parser(target, trained_parts(network), card)
    if as_json:
        print_json({"folder": str(target), **facts})
    else:
        print_table(["figure", "value"], [[name, str(value)] for name, value in facts.items()])


def _sources(domain: str) -> tuple[Source, BroughtAlong]:
    """Return a domain's tools, pools and messages, and apart those that bring tools along."""
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.parser.episodes import Source, brought_along
    from casewright.serve.cli.finetune.ingredients import ingredients
    from casewright.stores import default_encoder

    read = ingredients(DataSection(domain=domain), default_encoder())
    alone = [q for q in read.queries if not q.record.tools_extra and not q.record.tools_removed]
    source = Source(domain, read.toolbox, read.pools, alone)
    return source, brought_along(domain, read.toolbox, read.queries)


#: Minutes of the whole that loading and saving take.
KEPT_MINUTES = 0.5


@app.command("adapt")
def finetune_adapt(
    domain: Annotated[
        str, typer.Option("--domain", "-d", help="Whose tools: FILE.py:NAME, or a domain's name.")
    ],
    source: Annotated[
        Path,
        typer.Option("--input", help="20 to 500 annotated messages, JSON Lines.", metavar="FILE"),
    ],
    target: ParserFolder,
    minutes: Annotated[
        float, typer.Option(min=0, help="What all of it may take, about.", metavar="MINUTES")
    ] = 8.0,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="The parser to start from; the one that ships by default.",
            metavar="FOLDER",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of episodes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the plan parser that ships on with annotated messages for your own tools.

    Writes a parser, which ask, plan, serve and eval take as --adapter.
    """
    begun = time.monotonic()
    from casewright.finetune.corpus import training_toolboxes
    from casewright.finetune.parser.training import (
        CHECKPOINT,
        SETTINGS,
        adapt_parser,
        trained_parts,
    )
    from casewright.finetune.training.run import check_writable
    from casewright.planner.parser.weights import FOLDER, read_card, save_parser
    from casewright.serve.cli.output import print_json, print_table
    from casewright.stores.progress import note

    check_writable(target)
    card = read_card(start or FOLDER)
    own = _source(domain, source)
    note(f"Training on {len(own.queries)} messages, at most {minutes:g} minutes …")
    left = max(0.0, minutes - (time.monotonic() - begun) / 60 - KEPT_MINUTES)
    settings = replace(SETTINGS, minutes=left, seed=seed)
    network = adapt_parser(own, training_toolboxes(), target, start or FOLDER, settings)
    facts: dict[str, Any] = {
        "domain": domain,
        "toolbox": own.toolbox.fingerprint(),
        "messages": len(own.queries),
        "minutes": minutes,
        "seed": seed,
        "from": card.training,
    }
    # How sure it may be is known of the parser that it started from.
    save_parser(target, trained_parts(network), replace(card, training=facts))
    (target / CHECKPOINT).unlink(missing_ok=True)
    following = [
        f"casewright eval --domain {domain} --input test.jsonl --adapter {target}",
        f'casewright ask --domain {domain} --adapter {target} "…"',
    ]
    if as_json:
        print_json({"folder": str(target), "next": following, **facts})
        return
    rows = [[name, str(facts[name])] for name in ("domain", "messages", "minutes")]
    print_table(["figure", "value"], rows, str(target))
    typer.echo("Measure it on messages that it has not seen, and ask:")
    typer.echo("".join(f"  {line}\n" for line in following), nl=False)


def _source(domain: str, file: Path) -> Source:
    """Return a domain's tools with the messages of a file.

    Raises:
        InputError: They are too few or too many, or one is not right for the tools.
    """
    from casewright.domains import find_domain
    from casewright.finetune.examples.query_pool import query_pool
    from casewright.finetune.parser.episodes import Source
    from casewright.finetune.parser.training import check_count
    from casewright.planner import read_annotated
    from casewright.serve.cli.finetune.ingredients import domain_toolbox
    from casewright.stores import default_encoder

    queries = read_annotated(file)
    check_count(file, len(queries))
    toolbox = domain_toolbox(domain, default_encoder())
    measuring = [query.query for query in find_domain(domain).measuring_queries()]
    return Source(domain, toolbox, {}, query_pool(queries, toolbox, measuring).queries)
