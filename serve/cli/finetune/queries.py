"""`casewright finetune sample`, `annotate`, `write-queries` and `pools`: queries to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Plot

#: Lines of a sheet that were not taken, of which a table tells.
SHOWN = 20
OwnDomain = Annotated[
    str | None,
    typer.Option("--domain", "-d", help="A domain's tools and annotated queries.", metavar="NAME"),
]
OwnToolbox = Annotated[
    Path | None, typer.Option("--toolbox", help="A file of your own tools.", metavar="FILE")
]
OwnQueries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        help="Annotated queries that are there, JSON Lines; the domain's by default.",
        metavar="FILE",
    ),
]
Seconds = Annotated[float, typer.Option(min=0.1, help="Deadline for the model, a query or a call.")]


class MethodName(StrEnum):
    """Methods as the command line calls them."""

    DQS = "dqs"
    DQS_LARGE = "dqs-large"
    DQS_EXTREMES = "dqs-extremes"
    FACILITY_LOCATION = "facility-location"
    RANDOM = "random"


app = typer.Typer(add_completion=False)


@app.command("sample")
def sample(
    pool: Annotated[
        Path,
        typer.Option(
            help="Queries to sample from: JSON Lines, a JSON list, or a text a line.",
            metavar="FILE",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The annotation sheet to write.", metavar="FILE")],
    initial: Annotated[
        Path | None,
        typer.Option(help="The queries that are there already, in such a file.", metavar="FILE"),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            "-d",
            help="In place of --initial, a domain's annotated queries.",
            metavar="NAME",
        ),
    ] = None,
    method: Annotated[
        MethodName,
        typer.Option(
            help="dqs samples the pool without the extremes; dqs-large the whole one, as the "
            "paper prints it; dqs-extremes the extremes.",
        ),
    ] = MethodName.DQS,
    size: Annotated[
        int | None,
        typer.Option(min=1, help="How many to sample; as many as the initial pool has by default."),
    ] = None,
    extremes: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.5, help="The share of the pool that DQS takes for extreme at either end."
        ),
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample.")] = 0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the figures of every method.")
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Sample the queries of a pool that are worth annotating, into a sheet to fill in."""
    from casewright.finetune.queries.query_files import check_output, read_queries, write_new
    from casewright.finetune.queries.sample_pool import sample_pool
    from casewright.serve.cli.output import print_json, print_table
    from casewright.stores import default_encoder

    if (initial is None) == (domain is None):
        raise InputError("Give either --initial FILE or --domain NAME.")
    check_output(output, pool, initial)
    if output.exists():
        raise InputError(f"--output {output} is there, perhaps filled in. Choose a new file.")
    there = read_queries(initial) if initial is not None else _domain_records(str(domain))
    sampled = sample_pool(
        there,
        read_queries(pool),
        default_encoder(),
        method=method.replace("-", "_"),
        size=size,
        extremes=extremes,
        seed=seed,
        compare=compare,
    )
    write_new(output, sampled.sheet)
    if plot is not None:
        sampled.draw(plot)
    if as_json:
        print_json({"file": str(output), **sampled.to_json()})
        return
    rows = sampled.rows()
    columns = list(rows[0])
    print_table(columns, [[row[column] for column in columns] for row in rows], str(output))
    for line in sampled.notes():
        typer.echo(line)


@app.command("annotate")
def annotate(
    source: Annotated[Path, typer.Option("--input", help="The annotation sheet.", metavar="SHEET")],
    output: Annotated[
        Path,
        typer.Option(help="Where annotated queries are added, JSON Lines.", metavar="FILE"),
    ],
    domain: OwnDomain = None,
    toolbox: OwnToolbox = None,
    queries: OwnQueries = None,
    model: Annotated[
        str | None,
        typer.Option(help="A chat model that writes empty plans.", metavar="PROVIDER:MODEL"),
    ] = None,
    rest: Annotated[
        Path | None,
        typer.Option(
            help="Where the other lines go; beside --output by default.",
            metavar="FILE",
        ),
    ] = None,
    seconds: Seconds = 30.0,
    as_json: AsJson = False,
) -> None:
    """Check a sheet that was filled in, and keep what is right as annotated queries.

    With --model, a chat model writes the plans that are empty; one that stays invalid after a
    repair is not taken. Lines that are empty or wrong are told with a mend, and written to a file
    of their own. Run again, it goes on where it stopped.
    """
    from dataclasses import asdict

    from casewright.finetune.queries.annotation import annotate as annotated
    from casewright.finetune.queries.annotation import rest_file, sheet_lines, write_rest
    from casewright.finetune.queries.query_files import ResumedLines, check_output
    from casewright.planner import ChatPlanner
    from casewright.serve.cli.output import print_json
    from casewright.serve.cli.own_tools import own_tools
    from casewright.stores.progress import progress_bar

    check_output(output, source)
    rest_path = rest_file(output, rest)
    check_output(rest_path, source)
    lines = sheet_lines(source)
    chat = None if model is None else _chat_model(model)
    kept = ResumedLines(output)
    with own_tools(domain, toolbox, queries) as own:
        planner = None
        if chat is not None:
            planner = ChatPlanner(chat, plan_cases=own.plan_cases(), seconds=seconds)
        with progress_bar("Annotating", len(lines), show=shown(planner is not None)) as advance:
            labels = {query.label for query in own.queries}
            report = annotated(lines, kept, own.toolbox, labels, planner=planner, advance=advance)
    if report.rest:
        write_rest(rest_path, report)
    facts = {
        "file": str(output),
        "added": report.added,
        "by_model": report.by_model,
        "already": report.already,
        "empty": len(report.problems) - report.wrong,
        "wrong": report.wrong,
        "rest": str(rest_path) if report.rest else None,
        "stopped": report.stopped or None,
    }
    if as_json:
        print_json({**facts, "problems": [asdict(problem) for problem in report.problems]})
    else:
        _print_annotated(facts, report.problems)
    if report.stopped:
        fail(f"The model was asked no more. {report.stopped}")
    if report.wrong:
        fail(
            f"{report.wrong} of {len(lines)} lines are wrong. Correct them in {rest_path} and give "
            "that as --input."
        )


@app.command("write-queries")
def write_queries(
    output: Annotated[
        Path, typer.Option(help="Where new queries are added, JSON Lines.", metavar="FILE")
    ],
    model: Annotated[str, typer.Option(help="The chat model.", metavar="PROVIDER:MODEL")],
    domain: OwnDomain = None,
    toolbox: OwnToolbox = None,
    queries: OwnQueries = None,
    per_shape: Annotated[
        int, typer.Option(min=1, max=10_000, help="Queries for each shape of plan.")
    ] = 10,
    shapes: Annotated[
        int | None, typer.Option(min=1, help="Only so many shapes, the most frequent first.")
    ] = None,
    per_request: Annotated[
        int, typer.Option(min=1, max=50, help="Queries to ask for at once.")
    ] = 10,
    seconds: Seconds = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for new queries with plans, for every shape of plan and every unused tool.

    What is kept has a plan that can be run, whose texts stand in the question, and is unlike what
    is there. Run again, it goes on where it stopped.
    """
    from casewright.finetune.queries.query_files import ResumedLines, check_output
    from casewright.finetune.queries.query_writer import QueryWriter, WriterSettings
    from casewright.serve.cli.output import print_json, print_table
    from casewright.serve.cli.own_tools import own_tools
    from casewright.stores.progress import note, progress_bar

    check_output(output, queries, toolbox)
    chat = _chat_model(model)
    kept = ResumedLines(output)
    settings = WriterSettings(
        per_shape=per_shape, per_request=per_request, shapes=shapes, seconds=seconds
    )
    with own_tools(domain, toolbox, queries) as own:
        writer = QueryWriter(chat, own.toolbox, own.queries, own.encoder, settings, apart=own.apart)
        note(f"Asking {model} for queries of {len(writer.wanted)} kinds of plans …")
        with progress_bar("Writing", len(writer.wanted), show=shown(True)) as advance:
            report = writer.write(kept.append, kept.records, advance)
    facts = {
        "file": str(output),
        "written": report.written.total(),
        "already": len(kept.records),
        "missing": report.missing.total(),
        "calls": report.calls,
        "failed_calls": report.failed,
        "last_failure": report.failure or None,
        "dropped": {why.value: count for why, count in report.dropped.most_common()},
        "stopped": report.stopped or None,
    }
    if as_json:
        by_kind = [
            {"kind": w.name, "written": report.written[w.name], "missing": report.missing[w.name]}
            for w in writer.wanted
        ]
        print_json({**facts, "kinds": by_kind})
    else:
        rows = [[name, value] for name, value in facts.items() if isinstance(value, (int, str))]
        print_table(["figure", "value"], rows)
        if report.dropped:
            dropped = [[why.value, count] for why, count in report.dropped.most_common()]
            print_table(["not taken", "count"], dropped)
    if report.stopped:
        fail(f"The model was asked no more. {report.stopped}")


def _domain_records(domain: str) -> list[dict[str, Any]]:
    from casewright.domains import find_domain

    records = [{"id": q.record.id, "query": q.query} for q in find_domain(domain).queries()]
    if not records:
        raise InputError(f"The domain {domain!r} has no annotated queries. Give --initial FILE.")
    return records


def _chat_model(name: str) -> Any:
    from casewright.planner import chat_model

    return chat_model(name)


def shown(slow: bool) -> bool | None:
    """Return whether a bar is shown: on a terminal, also for few items where each takes long."""
    import sys

    return sys.stderr.isatty() if slow else None


def _print_annotated(told: dict[str, Any], problems: Sequence[Any]) -> None:
    from casewright.serve.cli.output import print_table

    if problems:
        rows = [[str(p.line), p.id, p.reason, p.mend] for p in problems[:SHOWN]]
        print_table(["line", "id", "reason", "mend"], rows)
    if len(problems) > SHOWN:
        typer.echo(f"… and {len(problems) - SHOWN:,} more lines; --json lists them all.")
    print_table(["figure", "value"], [[n, v] for n, v in told.items() if v is not None])


def fail(message: str) -> None:
    """End with a user's error; with --json its object would stand beside the result."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


@app.command("pools")
def finetune_pools(
    toolbox: Annotated[Path, typer.Option(help="A file of your own tools, JSON.", metavar="FILE")],
    model: Annotated[str, typer.Option(help="A chat model, as provider:model.", metavar="NAME")],
    output: Annotated[
        Path, typer.Option(help="The pools; tools that it has are not asked for.", metavar="FILE")
    ],
    seconds: Annotated[float, typer.Option(min=0.1, help="Deadline of one tool's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for other names and descriptions of your tools, which TEvo draws from.

    Run again, it goes on where it stopped, and asks once more for tools that got no pool.
    """
    from casewright.finetune.examples.pool_maker import PoolMaker
    from casewright.finetune.queries.query_files import check_output
    from casewright.planner import chat_model
    from casewright.serve.cli.output import print_json
    from casewright.stores.progress import progress_bar
    from casewright.tools import toolbox_from_file

    check_output(output, toolbox)
    tools = toolbox_from_file(toolbox)
    with progress_bar("Asking for pools", len(tools), show=shown(True)) as advance:
        maker = PoolMaker(chat_model(model), seconds=seconds, tell=lambda tool: advance(1))
        result = maker.make(tools, output)
    rows = [
        {
            "tool": name,
            "names": len(pool.names),
            "descriptions": len(pool.descriptions),
            "dropped": result.dropped.get(name, 0),
        }
        for name, pool in result.pools.items()
    ]
    if as_json:
        print_json({"file": str(output), "tools": rows, "failed": result.failed})
    else:
        _print_pools(rows, result.failed, str(output))
    if result.failed:
        fail(
            f"{len(result.failed)} of {len(tools)} tools have no pool. Run the command again to "
            "ask for them once more."
        )


def _print_pools(rows: Sequence[Mapping[str, Any]], failed: Mapping[str, str], title: str) -> None:
    from casewright.serve.cli.output import print_table

    columns = ["tool", "names", "descriptions", "dropped"]
    print_table(columns, [[row[column] for column in columns] for row in rows], title)
    for name, why in failed.items():
        typer.echo(f"No pool for {name}: {why}")
