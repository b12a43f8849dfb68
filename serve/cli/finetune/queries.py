"""`casewright finetune sample`, `annotate`, `write-queries` and `pools`: queries to learn from."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Plot
from casewright.serve.cli.output import fail, print_json, print_rows, print_table
from casewright.serve.cli.own_tools import own_tools

#: Maximum of rejected lines in a printed table.
SHOWN = 20
OwnDomain = Annotated[
    str | None,
    Option("--domain", "-d", help="A domain's tools and annotated queries.", metavar="NAME"),
]
OwnToolbox = Annotated[Path | None, Option(help="A file of your own tools.", metavar="FILE")]
OwnQueries = Annotated[
    Path | None, Option(help="Annotated queries; the domain's by default.", metavar="FILE")
]
Seconds = Annotated[float, Option(min=0.1, help="Deadline for the model, a query or a call.")]


class MethodName(StrEnum):
    """Methods by their names on the command line."""

    DQS = "dqs"
    DQS_LARGE = "dqs-large"
    DQS_EXTREMES = "dqs-extremes"
    FACILITY_LOCATION = "facility-location"
    RANDOM = "random"


app = Typer(add_completion=False)


@app.command("sample")
def sample(
    pool: Annotated[
        Path, Option(help="Queries to sample from: JSON Lines, JSON, or text.", metavar="FILE")
    ],
    output: Annotated[Path, Option(help="The annotation sheet to write.", metavar="FILE")],
    initial: Annotated[
        Path | None, Option(help="The existing queries, in such a file.", metavar="FILE")
    ] = None,
    domain: Annotated[
        str | None, Option("--domain", "-d", help="The domain of existing queries.", metavar="NAME")
    ] = None,
    method: Annotated[
        MethodName,
        Option(
            help="dqs leaves out the extremes of the pool, dqs-large none, dqs-extremes all others."
        ),
    ] = MethodName.DQS,
    size: Annotated[
        int | None, Option(min=1, help="How many to sample; by default as many as exist.")
    ] = None,
    extremes: Annotated[
        float,
        Option(min=0.0, max=0.5, help="DQS's share of the pool that is extreme, at either end."),
    ] = 0.05,
    seed: Annotated[int, Option(min=0, help="Of the sample.")] = 0,
    compare: Annotated[bool, Option("--compare", help="Show the figures of every method.")] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Sample the queries of a pool that are worth annotating, into a sheet to fill in."""
    from casewright.domains import find_domain
    from casewright.finetune.queries.query_files import (
        check_output,
        json_line,
        read_queries,
        write_new,
    )
    from casewright.finetune.queries.sample_pool import sample_pool
    from casewright.stores import default_encoder

    if (initial is None) == (domain is None):
        raise InputError("Give either --initial FILE or --domain NAME.")
    check_output(output, pool, initial)
    if output.exists():
        raise InputError(f"--output {output} exists, perhaps filled in. Choose a new file.")
    if initial is not None:
        known = read_queries(initial)
    else:
        known = [{"id": q.record.id, "query": q.query} for q in find_domain(str(domain)).queries()]
        if not known:
            raise InputError(
                f"The domain {domain!r} has no annotated queries. Give --initial FILE."
            )
    sampled = sample_pool(
        known,
        read_queries(pool),
        default_encoder(),
        method=method.replace("-", "_"),
        size=size,
        extremes=extremes,
        seed=seed,
        compare=compare,
    )
    write_new(output, map(json_line, sampled.sheet))
    if plot is not None:
        sampled.draw(plot)
    if as_json:
        print_json({"file": str(output), **sampled.to_json()})
        return
    print_rows(sampled.rows(), str(output))
    for line in sampled.notes():
        echo(line)


@app.command("annotate")
def annotate(
    source: Annotated[Path, Option("--input", help="The annotation sheet.", metavar="SHEET")],
    output: Annotated[
        Path, Option(help="Where annotated queries are added, JSON Lines.", metavar="FILE")
    ],
    domain: OwnDomain = None,
    toolbox: OwnToolbox = None,
    queries: OwnQueries = None,
    model: Annotated[
        str | None, Option(help="A chat model that fills in empty plans.", metavar="PROVIDER:MODEL")
    ] = None,
    rest: Annotated[
        Path | None,
        Option(help="The other lines' file; beside --output by default.", metavar="FILE"),
    ] = None,
    seconds: Seconds = 30.0,
    as_json: AsJson = False,
) -> None:
    """Check a sheet that was filled in, and add its right lines as annotated queries.

    With --model, a chat model writes the empty plans; a plan that is still invalid after a repair
    is not taken. Empty and wrong lines are reported, and written to a file of their own. Another
    run continues.
    """
    from casewright.finetune.queries.annotation import annotate as annotate_lines
    from casewright.finetune.queries.annotation import rest_file, sheet_lines
    from casewright.finetune.queries.query_files import ResumedLines, check_output, write_new
    from casewright.planner import ChatPlanner, chat_model
    from casewright.stores.progress import progress_bar

    check_output(output, source)
    rest_path = rest_file(output, rest)
    check_output(rest_path, source)
    lines = sheet_lines(source)
    chat = None if model is None else chat_model(model)
    file = ResumedLines(output)
    with own_tools(domain, toolbox, queries) as tools:
        planner = None
        if chat is not None:
            planner = ChatPlanner(chat, plan_cases=tools.plan_cases(), seconds=seconds)
        show = sys.stderr.isatty() if planner is not None else None
        with progress_bar("Annotating", len(lines), show=show) as advance:
            labels = {query.label for query in tools.queries}
            report = annotate_lines(
                lines, file, tools.toolbox, labels, planner=planner, advance=advance
            )
    if report.rest:
        write_new(rest_path, (line + "\n" for line in report.rest))
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
        if report.problems:
            rows = [[str(p.line), p.id, p.reason, p.mend] for p in report.problems[:SHOWN]]
            print_table(["line", "id", "reason", "mend"], rows)
        if len(report.problems) > SHOWN:
            more = len(report.problems) - SHOWN
            echo(f"… and {more:,} more lines; --json lists them all.")
        print_table(["figure", "value"], [[n, v] for n, v in facts.items() if v is not None])
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
        Path, Option(help="Where new queries are added, JSON Lines.", metavar="FILE")
    ],
    model: Annotated[str, Option(help="The chat model.", metavar="PROVIDER:MODEL")],
    domain: OwnDomain = None,
    toolbox: OwnToolbox = None,
    queries: OwnQueries = None,
    per_shape: Annotated[
        int, Option(min=1, max=10_000, help="Queries for each shape of plan.")
    ] = 10,
    shapes: Annotated[
        int | None, Option(min=1, help="Only so many shapes, the most frequent first.")
    ] = None,
    per_request: Annotated[int, Option(min=1, max=50, help="Queries to ask for at once.")] = 10,
    seconds: Seconds = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for new queries with plans, for every shape of plan and every unused tool.

    Queries are kept if their plan can be run, its texts are in the question, and they differ from
    known ones. Another run continues.
    """
    from casewright.finetune.queries.query_files import ResumedLines, check_output
    from casewright.finetune.queries.query_writer import QueryWriter, WriterSettings
    from casewright.planner import chat_model
    from casewright.stores.progress import note, progress_bar

    check_output(output, queries, toolbox)
    chat = chat_model(model)
    file = ResumedLines(output)
    settings = WriterSettings(
        per_shape=per_shape, per_request=per_request, shapes=shapes, seconds=seconds
    )
    with own_tools(domain, toolbox, queries) as tools:
        writer = QueryWriter(
            chat, tools.toolbox, tools.queries, tools.encoder, settings, apart=tools.apart
        )
        note(f"Asking {model} for queries of {len(writer.wanted)} kinds of plans …")
        with progress_bar("Writing", len(writer.wanted), show=sys.stderr.isatty()) as advance:
            report = writer.write(file.append, file.records, advance)
    facts = {
        "file": str(output),
        "written": report.written.total(),
        "already": len(file.records),
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


@app.command("pools")
def finetune_pools(
    toolbox: Annotated[Path, Option(help="A file of your own tools, JSON.", metavar="FILE")],
    model: Annotated[str, Option(help="A chat model, as provider:model.", metavar="NAME")],
    output: Annotated[
        Path, Option(help="The pools; tools that it has are not asked for.", metavar="FILE")
    ],
    seconds: Annotated[float, Option(min=0.1, help="Deadline of one tool's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for other names and descriptions of your tools, which TEvo draws from.

    Another run continues, and asks again for tools without a pool.
    """
    from casewright.finetune.examples.pool_maker import PoolMaker
    from casewright.finetune.queries.query_files import check_output
    from casewright.planner import chat_model
    from casewright.stores.progress import progress_bar
    from casewright.tools import toolbox_from_file

    check_output(output, toolbox)
    tools = toolbox_from_file(toolbox)
    with progress_bar("Asking for pools", len(tools), show=sys.stderr.isatty()) as advance:
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
        columns = ["tool", "names", "descriptions", "dropped"]
        print_table(columns, [list(row.values()) for row in rows], str(output))
        for name, why in result.failed.items():
            echo(f"No pool for {name}: {why}")
    if result.failed:
        fail(
            f"{len(result.failed)} of {len(tools)} tools have no pool. Run the command again to "
            "ask for them once more."
        )
