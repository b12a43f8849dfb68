"""`casewright finetune parser` trains the plan parser; `adapt` trains it further for your tools."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer, echo

from casewright.serve.cli.finetune.data import domain_toolbox, training_inputs
from casewright.serve.cli.options import AsJson, Device, DomainOrFile
from casewright.serve.cli.output import print_facts, print_json, print_table

if TYPE_CHECKING:
    from casewright.finetune.parser.episodes import AddedToolSources, Source

#: Number of parts of a domain's queries; each part is trained on like one toolbox.
DOMAIN_PARTS = 30
#: Numbers of plan cases with which the parser is evaluated.
CASE_COUNTS = (0, 5)
#: Maximum proportion of messages on which the parser asks back.
MAX_ASKED_BACK = 0.1
#: Minutes that are reserved for loading and saving.
RESERVED_MINUTES = 0.5

app = Typer(add_completion=False)
ParserFolder = Annotated[
    Path, Option("--output", help="The parser's folder; a training that was stopped there goes on.")
]


@app.command("parser")
def finetune_parser(
    target: ParserFolder,
    minutes: Annotated[float, Option(min=0, help="Duration of the training.")] = 60,
    start: Annotated[Path | None, Option("--from", help="A trained parser to start from.")] = None,
    frozen: Annotated[int, Option(min=0, max=6, help="Encoder layers that stay unchanged.")] = 6,
    rate: Annotated[float, Option(min=0, help="The highest learning rate.")] = 6e-4,
    domain: Annotated[str | None, Option(help="Also learn from this domain.")] = None,
    sets: Annotated[
        Path | None, Option(help="Also learn from sealtools and toolalpaca in this folder.")
    ] = None,
    seed: Annotated[int, Option(help="The seed of random choices.")] = 0,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Train the plan parser, which reads the tools as an input, on the corpus of toolboxes.

    Validation toolboxes calibrate the parser's confidence. Repeat a stopped command to continue.
    """
    from casewright.finetune.corpus import read_corpus, training_toolboxes
    from casewright.finetune.parser import measuring
    from casewright.finetune.parser.episodes import digest, source_drawer, split_source
    from casewright.finetune.parser.public_sets import public_sources
    from casewright.finetune.parser.training import ParserSettings, changed_weights, train_parser
    from casewright.planner.parser.runtime import open_runtime
    from casewright.planner.parser.weights import ParserCard, read_card, save_parser
    from casewright.stores import default_encoder

    domain_parts: list[Source] = []
    sources, held_out_queries = [], []
    if domain is not None:
        source, added_tools = _domain_source(domain)
        domain_parts = split_source(source, DOMAIN_PARTS, random.Random(seed))
        sources = [*domain_parts, *added_tools.training]
        held_out_queries = added_tools.validation
    if sets is not None:
        sources += public_sources(sets, default_encoder(), random.Random(seed))
    settings = ParserSettings(minutes=minutes, frozen=frozen, rate=rate, seed=seed)
    corpus = training_toolboxes(follow_ups=False)
    draw_sources = source_drawer(corpus, sources, domain_parts)
    network = train_parser(draw_sources, settings, target, start, device)
    # The evaluation opens the saved weights; the card with its figures is saved afterwards.
    save_parser(target, changed_weights(network), ParserCard())
    runtime = open_runtime(target)
    toolboxes = read_corpus("validation")
    figures: dict[str, float] = {}
    # The scores of each toolbox, with all numbers of plan cases.
    all_scores: list[list[measuring.PlanScore]] = [[] for _ in toolboxes]
    for case_count in CASE_COUNTS:
        scores = [[*measuring.score_toolboxes(runtime, [t], case_count, seed)] for t in toolboxes]
        figures |= measuring.accuracy_figures(list(chain(*scores)), f"{case_count} cases")
        all_scores = [[*earlier, *new] for earlier, new in zip(all_scores, scores, strict=True)]
    if held_out_queries:
        requests = [(query, query.record.request(source.toolbox)) for query in held_out_queries]
        query_scores = (measuring.score_messages(runtime, r.toolbox, [], [q]) for q, r in requests)
        title = "tools that a message brings along"
        figures |= measuring.accuracy_figures(list(chain(*query_scores)), title)
    fitted_card = measuring.fit_card(list(chain(*all_scores)))
    facts: dict[str, Any] = {"corpus": digest(corpus), "domain": domain}
    facts |= {"public sets": sets is not None}
    facts |= {"from": read_card(start).training if start else None, "minutes": minutes}
    facts |= {"frozen": frozen, "rate": rate, "seed": seed, **figures}
    confidences = [[fitted_card.confidence(s.score) for s in scores] for scores in all_scores]
    threshold = measuring.ask_back_threshold(confidences, MAX_ASKED_BACK)
    card = replace(fitted_card, asks_below=threshold, training=facts)
    save_parser(target, changed_weights(network), card)
    print_facts({"folder": str(target), **facts}, as_json=as_json)


def _domain_source(domain: str) -> tuple[Source, AddedToolSources]:
    """Return a source of a domain's messages, and other sources of its messages that add tools."""
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.parser.episodes import Source, added_tool_sources

    data = training_inputs(DataSection(domain=domain))
    unchanged = [q for q in data.queries if not q.record.tools_extra and not q.record.tools_removed]
    source = Source(domain, data.toolbox, data.pools, unchanged)
    return source, added_tool_sources(domain, data.toolbox, data.queries)


@app.command("adapt")
def finetune_adapt(
    domain: DomainOrFile,
    source: Annotated[Path, Option("--input", help="20 to 500 annotated messages, JSON Lines.")],
    target: ParserFolder,
    minutes: Annotated[float, Option(min=0, help="Approximate duration of the command.")] = 8.0,
    start: Annotated[
        Path | None, Option("--from", help="The parser to start from; by default the shipped one.")
    ] = None,
    seed: Annotated[int, Option(help="The seed of random choices.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the shipped plan parser further, with annotated messages for your own tools.

    The result is a parser for --adapter of ask, plan, serve and eval.
    """
    start_time = time.monotonic()
    from casewright.finetune.corpus import training_toolboxes
    from casewright.finetune.parser import training
    from casewright.finetune.training.run import check_writable
    from casewright.planner.parser.weights import FOLDER, read_card, save_parser
    from casewright.stores.progress import note

    check_writable(target)
    card = read_card(start or FOLDER)
    training_source = _message_source(domain, source)
    note(f"Training on {len(training_source.queries)} messages, at most {minutes:g} minutes …")
    remaining = max(0.0, minutes - (time.monotonic() - start_time) / 60 - RESERVED_MINUTES)
    settings = replace(training.SETTINGS, minutes=remaining, seed=seed)
    network = training.adapt_parser(
        training_source, training_toolboxes(follow_ups=False), target, start or FOLDER, settings
    )
    facts: dict[str, Any] = {"domain": domain, "toolbox": training_source.toolbox.fingerprint()}
    facts |= {"messages": len(training_source.queries), "minutes": minutes}
    facts |= {"seed": seed, "from": card.training}
    # The new card differs only in ``training``; the initial parser's calibration is kept.
    save_parser(target, training.changed_weights(network), replace(card, training=facts))
    (target / training.CHECKPOINT).unlink(missing_ok=True)
    next_commands = [
        f"casewright eval --domain {domain} --input test.jsonl --adapter {target}",
        f'casewright ask --domain {domain} --adapter {target} "…"',
    ]
    if as_json:
        print_json({"folder": str(target), "next": next_commands, **facts})
        return
    rows = [[name, str(facts[name])] for name in ("domain", "messages", "minutes")]
    print_table(["figure", "value"], rows, str(target))
    echo("Measure the parser on unseen messages, and ask:")
    echo("".join(f"  {line}\n" for line in next_commands), nl=False)


def _message_source(domain: str, file: Path) -> Source:
    """Return the annotated messages of a file, with a domain's tools, to train on."""
    from casewright.domains import find_domain
    from casewright.finetune.examples.query_pool import query_pool
    from casewright.finetune.parser.episodes import Source
    from casewright.finetune.parser.training import check_count
    from casewright.planner import read_annotated

    queries = read_annotated(file)
    check_count(file, len(queries))
    toolbox = domain_toolbox(domain)
    test_questions = [query.query for query in find_domain(domain).measuring_queries()]
    return Source(domain, toolbox, {}, query_pool(queries, toolbox, test_questions).queries)
