"""The command `casewright ingest`, which turns documents into cases."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, EncoderName
from casewright.serve.cli.output import fail, print_json, print_table, visible

if TYPE_CHECKING:
    from casewright.stores.documents.ingest import IngestReport

#: Maximum number of skipped files that the report names for each reason.
MAX_NAMES = 5

app = Typer(add_completion=False)


@app.command()
def ingest(
    path: Annotated[
        str, Argument(help="A folder of documents, or one document; with --remove, a folder.")
    ],
    into: Annotated[
        str | None,
        Option(
            help="A folder or a Qdrant server's URL; by default the store of the domain documents.",
            metavar="LOCATION",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        Option(help="Read only matching files, such as '*.md' or docs/api.", metavar="GLOB"),
    ] = None,
    exclude: Annotated[
        list[str] | None, Option(help="Skip matching files and folders.", metavar="GLOB")
    ] = None,
    remove: Annotated[
        bool, Option("--remove", help="Remove all cases of the folder, even if it does not exist.")
    ] = False,
    seconds: Annotated[
        float,
        Option(
            min=1,
            help="Limit of CPU seconds for a file, plus 10 for each megabyte; slower files are "
            "reported as failed.",
        ),
    ] = 60.0,
    dry_run: Annotated[bool, Option("--dry-run", help="Read and compare without writing.")] = False,
    encoder: EncoderName = None,
    as_json: AsJson = False,
) -> None:
    """Turn documents into cases: prose in many formats, notebooks, tables, JSON, source code.

    Another run encodes only changes, and removes the cases of deleted files. Logs, generated and
    hidden files, node_modules, __pycache__ and virtual environments are skipped; --dry-run lists
    them. Links are not followed; .gitignore is not read. Unreadable files are reported; the exit
    code is 2 if no file could be read.
    """
    from casewright.domains.store_opening import open_waiting
    from casewright.serve.session.defaults import store_folder
    from casewright.stores.documents.cases import COLLECTION, document_schema, remove_root
    from casewright.stores.documents.ingest import ingest as ingest_documents
    from casewright.stores.encoders.sources import named_encoder

    if remove and (include or exclude or dry_run):
        raise InputError(
            "--remove removes all cases of a folder. Leave out --include, --exclude and --dry-run."
        )
    location = into or str(store_folder(COLLECTION, encoder))
    # A command that stores nothing must not create a store.
    is_new = "://" not in location and not Path(location).expanduser().exists()
    store_location = ":memory:" if (dry_run or remove) and is_new else location
    with open_waiting(document_schema(named_encoder(encoder)), store_location) as store:
        if remove:
            removed, remaining = remove_root(store, path), store.count()
            if as_json:
                print_json({"removed": removed, "location": location, "cases": remaining})
            else:
                echo(f"Removed {removed} cases of {path}; {location} now has {remaining}.")
            return
        try:
            globs: Any = {"include": include or (), "exclude": exclude or ()}
            report = ingest_documents(store, path, seconds=seconds, dry_run=dry_run, **globs)
        except KeyboardInterrupt:
            echo("Stopped. The stored cases remain; another run continues from there.", err=True)
            raise
        case_count = store.count()
    if as_json:
        file_lists = {
            name: [{"path": file, "reason": reason} for file, reason in getattr(report, name)]
            for name in ("failed", "skipped", "notes")
        }
        details = {"location": location, "dry_run": dry_run, "cases": case_count}
        print_json({**asdict(report), **file_lists, **details})
    else:
        _show_report(report, path, location, case_count, dry_run)
        if report.files and not dry_run:
            store_option = f" --store {shlex.quote(into)}" if into else ""
            echo(f'Ask: casewright ask --domain {COLLECTION}{store_option} "…"')
    if report.failed and not report.files:
        fail("None of the files could be read; the report says why.")


def _show_report(report: IngestReport, path: str, location: str, count: int, dry_run: bool) -> None:
    from casewright.stores.documents.file_walk import READ_KINDS

    if not (report.files or report.removed or report.failed):
        echo(f"Nothing to ingest in {path}. Formats: {READ_KINDS}.")
    else:
        verb = "would be" if dry_run else "is" if report.files == 1 else "are"
        echo(visible(f"{_files_text(report.files)} of {report.root} {verb} stored as cases."))
        rows = [
            ("added", report.added),
            ("updated: moved within the file", report.updated),
            ("unchanged", report.unchanged),
            ("removed", report.removed),
            (f"in {location}", count),
        ]
        print_table(["cases", ""], rows)
    files_by_reason: dict[str, list[str]] = {}
    for file, reason in report.skipped:
        files_by_reason.setdefault(reason, []).append(file)
    for reason, files in sorted(files_by_reason.items()):
        more = f" and {len(files) - MAX_NAMES} more" if len(files) > MAX_NAMES else ""
        names = ", ".join(files[:MAX_NAMES]) + more
        echo(visible(f"Skipped {_files_text(len(files))}, since {reason}: {names}"))
    if report.failed:
        print_table(["failed", "since"], report.failed)
    for file, note in report.notes:
        echo(visible(f"{file} was {note}."))


def _files_text(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
