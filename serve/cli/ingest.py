"""`casewright ingest`: documents become cases, as a command."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.serve.cli.options import AsJson, EncoderName

#: Files that are named of those which were skipped for one reason.
NAMED = 5

if TYPE_CHECKING:
    from casewright.stores.documents.ingest import IngestReport
    from casewright.stores.store import CaseStore

app = typer.Typer(add_completion=False)


@app.command()
def ingest(
    path: Annotated[
        str,
        typer.Argument(help="A folder of documents, or one document; with --remove, a folder."),
    ],
    into: Annotated[
        str | None,
        typer.Option(
            help="A folder, or a Qdrant server's URL; where ask --domain documents looks by "
            "default. ask --store names another place.",
            metavar="LOCATION",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="Only files that match, such as '*.md' or docs/api; what is stored of others "
            "stays as it is.",
            metavar="GLOB",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            help="No files or folders that match; what is stored of them stays as it is.",
            metavar="GLOB",
        ),
    ] = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Remove everything that is stored of the folder, which may be gone itself.",
        ),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(
            min=1,
            help="Of computing that reading a file may take, and 10 more for each megabyte of it; "
            "one that takes longer is left out, and named.",
        ),
    ] = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and compare, and write nothing.")
    ] = False,
    encoder: EncoderName = None,
    as_json: AsJson = False,
) -> None:
    """Make cases of documents: text, Markdown, HTML, PDF, source code.

    A second run encodes only what changed, and removes what is gone from what was looked at: from
    the folder, or with --include and --exclude from the files that they choose. Hidden files,
    node_modules, __pycache__ and virtual environments are passed over; links are not followed;
    .gitignore is not read. A file that cannot be read is reported, and the rest goes in: the exit
    code is 0 then, and 2 where there were files and none could be read.
    """
    from casewright.domains.waiting import open_waiting
    from casewright.errors import InputError
    from casewright.serve.cli.output import print_json
    from casewright.serve.session.place import place_of
    from casewright.stores.documents.cases import COLLECTION, document_schema
    from casewright.stores.documents.ingest import ingest as run
    from casewright.stores.encoders.sources import named_encoder

    if remove and (include or exclude or dry_run):
        raise InputError(
            "--remove removes all that is stored of a folder. Leave out --include, --exclude and "
            "--dry-run."
        )
    location = into or str(place_of(COLLECTION, encoder))
    # What is only looked at is not made.
    new = "://" not in location and not Path(location).expanduser().exists()
    held = ":memory:" if (dry_run or remove) and new else location
    with open_waiting(document_schema(named_encoder(encoder)), held) as store:
        if remove:
            _remove(store, path, location, as_json)
            return
        try:
            report = run(
                store,
                path,
                include=include or (),
                exclude=exclude or (),
                seconds=seconds,
                dry_run=dry_run,
            )
        except KeyboardInterrupt:
            typer.echo("Stopped. What was stored stays; another run goes on from there.", err=True)
            raise
        cases = store.count()
    if as_json:
        pairs = {
            name: [{"path": file, "reason": reason} for file, reason in getattr(report, name)]
            for name in ("failed", "skipped")
        }
        place = {"location": location, "dry_run": dry_run, "cases": cases}
        print_json({**asdict(report), **pairs, **place})
    else:
        _print(report, path, location, cases, dry_run)
    if report.failed and not report.files:
        # Not raised: with --json its object would stand behind the report on stdout.
        typer.echo("error: None of the files could be read; the report says why.", err=True)
        raise typer.Exit(2)


def _remove(store: CaseStore, path: str, location: str, as_json: bool) -> None:
    from casewright.serve.cli.output import print_json
    from casewright.stores.documents.roots import remove_root

    removed = remove_root(store, path)
    if as_json:
        print_json({"removed": removed, "location": location, "cases": store.count()})
    else:
        typer.echo(f"Removed {removed} cases of {path}; {location} now has {store.count()}.")


def _print(report: IngestReport, path: str, location: str, cases: int, dry_run: bool) -> None:
    from casewright.serve.cli.output import print_table
    from casewright.stores.documents.cases import COLLECTION
    from casewright.stores.documents.kinds import READ

    if not (report.files or report.removed or report.failed):
        typer.echo(f"There was nothing to ingest in {path}. Files that are read: {READ}.")
    else:
        _print_counts(report, location, cases, dry_run)
    _print_skipped(report)
    if report.failed:
        print_table(["failed", "since"], report.failed)
    if report.files and not dry_run:
        typer.echo(f'Ask: casewright ask --domain {COLLECTION} "…"')


def _print_counts(report: IngestReport, location: str, cases: int, dry_run: bool) -> None:
    from casewright.serve.cli.output import print_table, visible

    rows = [
        ("added", report.added),
        ("updated: their place in the file", report.updated),
        ("unchanged", report.unchanged),
        ("removed", report.removed),
        (f"in {location}", cases),
    ]
    told = "would be" if dry_run else "is" if report.files == 1 else "are"
    typer.echo(visible(f"{_files(report.files)} of {report.root} {told} stored as cases."))
    print_table(["cases", ""], rows)


def _print_skipped(report: IngestReport) -> None:
    from casewright.serve.cli.output import visible

    by_reason: dict[str, list[str]] = {}
    for file, reason in report.skipped:
        by_reason.setdefault(reason, []).append(file)
    for reason, files in sorted(by_reason.items()):
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        names = ", ".join(files[:NAMED]) + more
        typer.echo(visible(f"Skipped {_files(len(files))}, since {reason}: {names}"))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
