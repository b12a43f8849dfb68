"""`casewright finetune sample` chooses queries to annotate; `annotate` checks the annotations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import fail, print_json, print_rows, print_table
from casewright.serve.cli.own_tools import own_tools

#: Maximum number of empty or wrong lines that are printed.
MAX_PROBLEMS = 20
SamplingMethod = Literal["dqs", "dqs-large", "dqs-extremes", "facility-location", "random"]
app = Typer(add_completion=False)


@app.command("sample")
def sample(
    pool: Annotated[Path, Option(help="Queries to sample: JSON Lines, JSON, or text.")],
    output: Annotated[Path, Option(help="The annotation sheet to write.", metavar="FILE")],
    initial: Annotated[Path | None, Option(help="Existing queries, in the same format.")] = None,
    domain: Annotated[
        str | None, Option("--domain", "-d", help="The domain of existing queries.", metavar="NAME")
    ] = None,
    method: Annotated[
        SamplingMethod, Option(help="dqs drops the pool's extremes; dqs-extremes keeps only them.")
    ] = "dqs",
    size: Annotated[
        int | None, Option(min=1, help="Number of queries; default: as many as existing queries.")
    ] = None,
    extremes: Annotated[
        float, Option(min=0, max=0.5, help="Share of each extreme: most or least similar queries.")
    ] = 0.05,
    seed: Annotated[int, Option(min=0, help="The seed of the sample.")] = 0,
    compare: Annotated[bool, Option("--compare", help="Show the figures of every method.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose queries of a pool for annotation, and write a sheet to fill in."""
    from casewright.domains import find_domain
    from casewright.finetune.queries import query_files
    from casewright.finetune.queries.sample_pool import sample_pool
    from casewright.stores import default_encoder

    if (initial is None) == (domain is None):
        raise InputError("Give either --initial FILE or --domain NAME.")
    query_files.check_output(output, pool, initial)
    if output.exists():
        raise InputError(f"--output {output} exists, perhaps filled in. Choose a new file.")
    if initial is not None:
        existing = query_files.read_queries(initial)
    else:
        queries = find_domain(str(domain)).queries()
        existing = [{"id": query.record.id, "query": query.query} for query in queries]
        if not existing:
            raise InputError(
                f"The domain {domain!r} has no annotated queries. Give --initial FILE."
            )
    sampled = sample_pool(
        existing,
        query_files.read_queries(pool),
        default_encoder(),
        method=method.replace("-", "_"),
        size=size,
        extremes=extremes,
        seed=seed,
        compare=compare,
    )
    query_files.write_new(output, map(query_files.json_line, sampled.sheet))
    if as_json:
        print_json({"file": str(output), **sampled.to_json()})
        return
    print_rows(sampled.rows(), str(output))
    for line in sampled.notes():
        echo(line)


@app.command("annotate")
def annotate(
    source: Annotated[Path, Option("--input", help="The annotation sheet.", metavar="SHEET")],
    output: Annotated[Path, Option(help="The JSON Lines file to add annotated queries to.")],
    domain: Annotated[
        str | None, Option("--domain", "-d", help="The domain of tools and annotated queries.")
    ] = None,
    toolbox: Annotated[Path | None, Option(help="A file of your own tools.")] = None,
    queries: Annotated[Path | None, Option(help="Annotated queries, if not the domain's.")] = None,
    rest: Annotated[
        Path | None, Option(help="A file for invalid lines; by default next to --output.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a filled-in sheet, and add its valid lines as annotated queries.

    Empty and wrong lines are reported, and written to another sheet, which you can correct.
    """
    from casewright.finetune.queries import query_files
    from casewright.finetune.queries.annotation import annotate as annotate_lines
    from casewright.finetune.queries.annotation import rest_file, sheet_lines

    query_files.check_output(output, source)
    rest_path = rest_file(output, rest)
    query_files.check_output(rest_path, source)
    lines = sheet_lines(source)
    file = query_files.QueryFile(output)
    with own_tools(domain, toolbox, queries) as tools:
        known_labels = {query.label for query in tools.queries}
        report = annotate_lines(lines, file, tools.toolbox, known_labels)
    if report.rest:
        query_files.write_new(rest_path, (line + "\n" for line in report.rest))
    facts: dict[str, Any] = {"file": str(output), "added": report.added_count}
    facts["already"] = report.known_count
    facts |= {"empty": len(report.problems) - report.wrong_count, "wrong": report.wrong_count}
    facts |= {"rest": str(rest_path) if report.rest else None}
    if as_json:
        print_json({**facts, "problems": [asdict(problem) for problem in report.problems]})
    else:
        if report.problems:
            rows = [[str(p.line), p.id, p.reason, p.mend] for p in report.problems[:MAX_PROBLEMS]]
            print_table(["line", "id", "reason", "mend"], rows)
        if (remaining := len(report.problems) - MAX_PROBLEMS) > 0:
            echo(f"… and {remaining:,} more lines; --json lists them all.")
        print_table(["figure", "value"], [[n, v] for n, v in facts.items() if v is not None])
    if report.wrong_count:
        fail(
            f"{report.wrong_count} of {len(lines)} lines are wrong. Correct them in {rest_path} "
            "and give this file as --input."
        )
