"""`casewright finetune adapt`: a planner of one's own, from some annotated messages."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.serve.cli.options import AsJson

if TYPE_CHECKING:
    from casewright.finetune.parser.episodes import Source

#: Minutes of the whole that loading and saving take.
KEPT_MINUTES = 0.5


app = typer.Typer(add_completion=False)


@app.command("adapt")
def finetune_adapt(
    domain: Annotated[
        str, typer.Option("--domain", "-d", help="Whose tools: FILE.py:NAME, or a domain's name.")
    ],
    source: Annotated[
        Path,
        typer.Option("--input", help="20 to 500 annotated messages, JSON Lines.", metavar="FILE"),
    ],
    target: Annotated[
        Path,
        typer.Option(
            "--output",
            help="The folder to write the parser to. A training that was stopped there goes on.",
            metavar="FOLDER",
        ),
    ],
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
    from casewright.finetune.parser.adapting import SETTINGS, adapt_parser
    from casewright.finetune.parser.training import CHECKPOINT, trained_parts
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
    told: dict[str, Any] = {
        "domain": domain,
        "toolbox": own.toolbox.fingerprint(),
        "messages": len(own.queries),
        "minutes": minutes,
        "seed": seed,
        "from": card.training,
    }
    # How sure it may be is known of the parser that it started from.
    save_parser(target, trained_parts(network), replace(card, training=told))
    (target / CHECKPOINT).unlink(missing_ok=True)
    following = [
        f"casewright eval --domain {domain} --input test.jsonl --adapter {target}",
        f'casewright ask --domain {domain} --adapter {target} "…"',
    ]
    if as_json:
        print_json({"folder": str(target), "next": following, **told})
        return
    rows = [[name, str(told[name])] for name in ("domain", "messages", "minutes")]
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
    from casewright.finetune.parser.adapting import check_count
    from casewright.finetune.parser.episodes import Source
    from casewright.planner import read_annotated
    from casewright.serve.cli.finetune.ingredients import domain_toolbox
    from casewright.stores import default_encoder

    queries = read_annotated(file)
    check_count(file, len(queries))
    toolbox = domain_toolbox(domain, default_encoder())
    measuring = [query.query for query in find_domain(domain).measuring_queries()]
    return Source(domain, toolbox, {}, query_pool(queries, toolbox, measuring).queries)
