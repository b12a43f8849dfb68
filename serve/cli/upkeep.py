"""`casewright check` and `casewright repair`: finding what is damaged, and mending it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from casewright.serve.cli.options import AsJson

#: How long to wait for another process that holds a store.
LOCK_SECONDS = 2.0
Place = Annotated[
    Path | None,
    typer.Argument(help="A store's folder; by default all stores below the data folder."),
]


app = typer.Typer(add_completion=False)


@app.command()
def check(place: Place = None, as_json: AsJson = False) -> None:
    """Read all of every store, and of the caches, and say what is damaged.

    The exit code is 2 where a store is. What is damaged in a cache is made again when it is needed.
    """
    from casewright.errors import StoreLockedError
    from casewright.serve.cli.output import print_json, print_table
    from casewright.stores.engines.upkeep import check_folder

    found: list[dict[str, Any]] = []
    for folder in _stores(place):
        try:
            looked = [asdict(one) for one in check_folder(folder, lock_seconds=LOCK_SECONDS)]
        except StoreLockedError:
            looked = [{"collection": "", "cases": None, "damage": "", "held": True}]
        found += [{"store": str(folder), "held": False, **one} for one in looked]
    caches = [] if place is not None else list(_caches(remove=False))
    damaged = sum(bool(one["damage"]) for one in found)
    if as_json:
        print_json({"stores": found, "caches": caches, "damaged": damaged})
    else:
        rows = [[one["store"], one["collection"], one["cases"], _state(one)] for one in found]
        print_table(["store", "collection", "cases", "state"], rows)
        if caches:
            print_table(["cache", "state"], [[one["cache"], one["state"]] for one in caches])
    if damaged:
        typer.echo(
            f"error: {damaged} of {len(found)} collections are damaged. Restore them from a copy, "
            "or run casewright repair, which keeps what is sound.",
            err=True,
        )
        raise typer.Exit(2)


@app.command()
def repair(place: Place = None, as_json: AsJson = False) -> None:
    """Build every damaged store anew of the cases in it that are sound, and say what is lost.

    The damaged files are kept beside it. Stop what uses the stores before.
    """
    from casewright.serve.cli.output import print_json
    from casewright.stores.engines.upkeep import repair_folder

    made = [
        {"store": str(folder), **asdict(one), "next": _next(folder, one.lost)}
        for folder in _stores(place)
        for one in repair_folder(folder, lock_seconds=LOCK_SECONDS)
    ]
    caches = [] if place is not None else list(_caches(remove=True))
    if as_json:
        print_json({"stores": made, "caches": caches})
        return
    if not made:
        typer.echo("No store is damaged.")
    for one in made:
        _print_repaired(one)
    for cache in caches:
        typer.echo(f"{cache['cache']}: {cache['state']}")


def _stores(place: Path | None) -> list[Path]:
    from casewright.stores.engines.edge_shard import SHARDS
    from casewright.stores.engines.embedded import RECORD
    from casewright.stores.paths import data_folder

    if place is not None:
        return [place]
    names = (RECORD, SHARDS, "collection")
    return sorted({file.parent for name in names for file in data_folder().rglob(name)})


def _caches(*, remove: bool) -> Iterator[dict[str, str]]:
    """Yield the caches and what is found of each; what is unusable may be removed."""
    from casewright.stores.encoders.vector_file import FILE, check_vectors
    from casewright.stores.paths import cache_folder

    file = cache_folder() / "embeddings" / FILE
    if file.is_file():
        counted = check_vectors(file, remove=remove)
        removed = "removed" if remove else "not usable: made again when they are needed"
        state = f"the whole file is damaged; {removed}" if counted is None else ""
        if counted is not None:
            state = f"{counted[0]} vectors" + (f", {counted[1]} {removed}" if counted[1] else "")
        yield {"cache": str(file), "state": state}


def _state(looked: dict[str, Any]) -> str:
    if looked["held"]:
        return "not looked at: another process holds it"
    return str(looked["damage"] or "sound")


def _next(folder: Path, lost: int | None) -> str:
    """Return the command that brings back what is lost; empty where there is none."""
    from casewright.domains import domain_names
    from casewright.stores.documents.cases import COLLECTION
    from casewright.stores.paths import data_folder

    if lost == 0:
        return ""
    for name in domain_names():
        # A domain may have several folders of stores.
        if folder.name == "cases" and data_folder() / name in folder.parents:
            return f"casewright domains --build {name}"
    if folder.parent == data_folder() and folder.name.startswith(COLLECTION):
        return "casewright ingest PATH"
    return ""


def _print_repaired(made: dict[str, Any]) -> None:
    lost = "how many are lost is not known" if made["lost"] is None else f"{made['lost']} are lost"
    typer.echo(f"{made['store']}, {made['collection']}: {made['cases']} cases are kept, {lost}.")
    if made["back"] != 0:
        known = "Some" if made["back"] is None else f"At least {made['back']}"
        typer.echo(f"  {known} that were deleted may be there again: delete them once more.")
    if made["texts"]:
        typer.echo(f"  The text of lost cases, without vectors: {made['texts']}")
    if made["next"]:
        typer.echo(f"  What is lost comes back by: {made['next']}")
    typer.echo(f"  The damaged files; remove them when nothing is missed: {made['beside']}")
